# SPDX-License-Identifier: Apache-2.0
"""Trainings on the hosts of a cluster, started in each way that docs/several-machines.md names."""
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

from cluster import TREE

LOCKSTEP = Path(os.environ.get("LOCKSTEP_BINARY", TREE / "build/release/bin/lockstep")).resolve()
JOB = TREE / "configs/digits_convnet.pbtxt"
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
MPIRUN_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
PORT = 29500
# A way that ends in one of these is told the transport, others choose.
TRANSPORTS = {" over TCP": "tcp", " through MPI": "mpi"}
WAYS = ("hosts", "hosts over TCP", "hosts through MPI", "mpirun", "mpirun over TCP", "mpirun through MPI", "variables", "torchrun")
# Where Slurm's daemons run, too; each with srun's --mpi.
SLURM_WAYS = {"srun": "none", "srun with PMIx": "pmix", "srun with PMIx through MPI": "pmix"}


def unreachable(lockstep=LOCKSTEP):
    """Why the hosts cannot run the command; empty where they can."""
    return "" if lockstep.is_relative_to(TREE) else f"{lockstep} lies outside {TREE}, which is what hosts see"


def has_rdma():
    """Whether ranks of MPI's launchers on several hosts take MPI where nobody says what to take."""
    devices, ports = Path("/dev/infiniband").glob("uverbs*"), Path("/sys/class/infiniband").glob("*/ports/*/state")
    return (any(devices) and any("ACTIVE" in port.read_text() for port in ports)) or any(Path("/sys/class/cxi").glob("*"))


class Ended:
    def __init__(self, codes, texts, seconds):
        self.codes = codes  # of each process that was started, the first one's first; None: it did not end
        self.texts = texts
        self.seconds = seconds

    def __str__(self):
        return f"exit {self.codes} after {self.seconds:.1f} s\n" + "\n".join(self.texts)


class Run:
    """What a run directory tells."""

    def __init__(self, run_dir):
        self.run_dir = run_dir

    def step(self):
        try:
            lines = (self.run_dir / "metrics.jsonl").read_text().splitlines()
        except FileNotFoundError:
            return 0
        return sum('"event"' not in line for line in lines)

    def transport(self):
        """What joined the ranks."""
        return json.loads((self.run_dir / "summary.json").read_text())["transport"]

    def digest(self):
        return json.loads((self.run_dir / "summary.json").read_text())["weights_digest"]


class Training(Run):
    """One run on hosts, a number of ranks on each, with its run directory in the shared folder: an empty one, or, if not
    fresh, that of the run before. `launcher`: the host on which `--hosts` is said; the first one by default. `options`: of
    the command; `of_mpirun`: of mpirun, where that is the way; `name`: of the run directory; `job`: a path that hosts see."""

    def __init__(self, cluster, way, hosts, ranks_a_host=1, settings=(), fresh=True, lockstep=LOCKSTEP, launcher=None,
                 environment=None, options=(), of_mpirun=(), name="run", job=JOB):
        super().__init__(cluster.state / "shared" / name)
        self.cluster = cluster
        self.logs = []
        self.environment = {**ONE_THREAD, **(environment or {})}
        if fresh:
            shutil.rmtree(self.run_dir, ignore_errors=True)
        train = [lockstep, "train", job, "--run-dir", f"/shared/{name}", "--device", "cpu", *options]
        for setting in settings:
            train += ["--set", setting]
        for through, transport in TRANSPORTS.items():
            if way.endswith(through):
                train += ["--transport", transport]
        places = ",".join(f"{host}:{ranks_a_host}" for host in hosts)
        if way.startswith("hosts"):
            self.processes = [self.start(launcher or hosts[0], [*train, "--hosts", places], {})]
        elif way.startswith("mpirun"):
            self.processes = [self.start(hosts[0], ["mpirun", "--host", places, "--bind-to", "none", *of_mpirun, *train],
                                         MPIRUN_AS_ROOT)]
        elif way in SLURM_WAYS:
            srun = ["srun", f"--mpi={SLURM_WAYS[way]}", "--nodelist", ",".join(hosts), "--ntasks-per-node", ranks_a_host,
                    "--ntasks", ranks_a_host * len(hosts), *train]
            self.processes = [self.start(hosts[0], srun, {})]
        else:
            self.processes = [self.start(host, train, self.variables(way, hosts, ranks_a_host, place, local))
                              for place, host in enumerate(hosts) for local in range(ranks_a_host)]

    @staticmethod
    def variables(way, hosts, ranks_a_host, place, local):
        found = {"RANK": place * ranks_a_host + local, "WORLD_SIZE": len(hosts) * ranks_a_host, "LOCAL_RANK": local,
                 "LOCAL_WORLD_SIZE": ranks_a_host, "MASTER_ADDR": hosts[0], "MASTER_PORT": PORT}
        if way == "torchrun":
            # Each host counts its own restarts.
            found.update(TORCHELASTIC_RUN_ID="cluster", TORCHELASTIC_RESTART_COUNT=place, TORCHELASTIC_USE_AGENT_STORE=True,
                         GROUP_WORLD_SIZE=len(hosts))
        return found

    def start(self, host, command, variables):
        log = self.cluster.state / f"output-{self.run_dir.name}-{len(self.logs)}"
        self.logs.append(log)
        with open(log, "wb") as output:
            return self.cluster.start(host, *command, environment={**self.environment, **variables}, stdout=output, stderr=output)

    def wait_for_step(self, step, limit=60):
        """Whether the run came there."""
        end = time.monotonic() + limit
        while time.monotonic() < end and all(process.poll() is None for process in self.processes):
            if self.step() >= step:
                return True
            time.sleep(0.05)
        return False

    def finish(self, limit):
        """Waits for its end; what goes on after the limit is left to the cluster's end."""
        since = time.monotonic()
        codes = []
        for process in self.processes:
            try:
                codes.append(process.wait(max(limit - (time.monotonic() - since), 0.1)))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                codes.append(None)
        return Ended(codes, [log.read_text(errors="replace") for log in self.logs], time.monotonic() - since)
