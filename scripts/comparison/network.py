# SPDX-License-Identifier: Apache-2.0
"""All-reduces between the hosts of a cluster that lies on this machine, beside their peers: scripts/bench --network.

One rank a host, float32. Each program is started anew for every turn, and they take turns: `plain` is sockets that carry as
many bytes and sum nothing, `TCP` and `MPI` are Lockstep's, `Open MPI` is MPI_Allreduce in the program of `MPI`, round for round,
`gloo` is PyTorch's.
"""
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cluster"))
from cluster import Cluster, ClusterError  # noqa: E402

BENCH = ROOT / "build/release/bin/allreduce_bench"
PROGRAMS = ROOT / "tests/bench"
COLUMNS = ("plain", "TCP", "MPI", "Open MPI", "gloo")
PORT = 29400
LIMIT_S = 300
# Rounds of a turn: as many as last about so long, within these bounds.
TURN_S, FEWEST, MOST = 4, 2, 15


class NetworkError(Exception):
    pass


def on_each(cluster, hosts, command, port):
    """Runs a program as torchrun does, a rank a host; what rank 0 prints."""
    ranks = []
    for rank, host in enumerate(hosts):
        environment = {"RANK": rank, "WORLD_SIZE": len(hosts), "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1, "MASTER_ADDR": hosts[0],
                       "MASTER_PORT": port, "HOSTS": ",".join(hosts), "OMP_NUM_THREADS": 1, "GLOO_SOCKET_IFNAME": "eth0",
                       "TORCHELASTIC_RUN_ID": f"bench-{port}"}
        ranks.append(cluster.start(host, *command, environment=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    return printed(ranks, command)


def through_mpirun(cluster, hosts, command):
    words = ["mpirun", "--allow-run-as-root", "--bind-to", "none", "-x", "LOCKSTEP_TRANSPORT=mpi", "--host", ",".join(hosts),
             *command]
    return printed([cluster.start(hosts[0], *words, environment={"OMP_NUM_THREADS": 1}, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)], command)


def printed(processes, command):
    """The JSON line of the first process, once all have ended well."""
    end = time.monotonic() + LIMIT_S
    said = []
    try:
        for process in processes:
            said.append(process.communicate(timeout=max(end - time.monotonic(), 0.1)))
    except subprocess.TimeoutExpired:
        for process in processes:
            process.kill()
        raise NetworkError(f"{Path(str(command[0])).name}: no end after {LIMIT_S} s") from None
    lines = [line for line in said[0][0].splitlines() if line.startswith("{")]
    if any(process.returncode for process in processes) or not lines:
        errors = "\n".join(error for _, error in said).strip().splitlines()
        raise NetworkError(f"{' '.join(map(str, command))}: {errors[-1] if errors else 'it printed nothing'}")
    return json.loads(lines[-1])


def turn(cluster, hosts, size, rounds, python, port):
    """{column: [milliseconds]} of one turn of each program."""
    found = {}
    plain = ["/usr/bin/python3", "-B", PROGRAMS / "plain_exchange.py", size, rounds]
    found["plain"] = [us / 1e3 for us in on_each(cluster, hosts, plain, port)["us"]]
    ours = [BENCH, "--alone", "--rounds", rounds, size]
    found["TCP"] = [on_each(cluster, hosts, ours, port + 100)["lockstep_us"] / 1e3]
    through_mpi = through_mpirun(cluster, hosts, [BENCH, "--rounds", rounds, size])
    found["MPI"], found["Open MPI"] = [through_mpi["lockstep_us"] / 1e3], [through_mpi["mpi_us"] / 1e3]
    if python:
        gloo = [python, "-B", PROGRAMS / "pytorch_allreduce.py", size, rounds]
        found["gloo"] = [us / 1e3 for us in on_each(cluster, hosts, gloo, port + 200)["us"]]
    return found


def rounds_for(size, hosts, gbps):
    least = 2 * (hosts - 1) / hosts * 8 * size / (gbps * 1e9) if gbps else 0.05
    return min(max(round(TURN_S / max(least, 1e-3)), FEWEST), MOST)


def measure(arguments, python):
    """A sentence and the lines of a table: of each link, size and number of hosts the median milliseconds of each program."""
    if min(arguments.hosts) < 2 or min(arguments.bytes) < 4 or min(arguments.gbps) < 0:
        raise NetworkError("at least 2 hosts, 4 bytes and no negative rate")
    columns = [column for column in COLUMNS if python or column != "gloo"]
    lines = [f"| link | bytes | hosts | {' | '.join(columns)} | TCP / plain | TCP / fastest peer |",
             f"|---|---|---|{'---|' * (len(columns) + 2)}"]
    cluster = Cluster("bench")
    cluster.up(max(arguments.hosts))
    port = PORT
    try:
        names = list(cluster.status()["hosts"])
        congestion = {cluster.congestion(name, arguments.congestion) for name in names}
        for gbps in arguments.gbps:
            for name in names:
                cluster.link(name, rate=gbps * 1e9)
            for size in arguments.bytes:
                for count in arguments.hosts:
                    found = {column: [] for column in columns}
                    for _ in range(arguments.rounds):
                        port += 1
                        for column, times in turn(cluster, names[:count], size, rounds_for(size, count, gbps), python, port).items():
                            found[column] += times
                    lines.append(row(gbps, size, count, found))
                    print(lines[-1], file=sys.stderr, flush=True)
    finally:
        cluster.down()
    return [f"The hosts' congestion control is {', '.join(congestion)}.", "", *lines]


def row(gbps, size, hosts, found):
    middle = {column: statistics.median(times) for column, times in found.items()}
    peer = min(middle[column] for column in ("Open MPI", "gloo") if column in middle)
    link = f"{gbps:g} Gbit/s" if gbps else "no limit"
    return (f"| {link} | {size / 1e6:g} MB | {hosts} | {' | '.join(f'{value:.0f}' for value in middle.values())} | "
            f"{middle['TCP'] / middle['plain']:.2f} | {middle['TCP'] / peer:.2f} |")
