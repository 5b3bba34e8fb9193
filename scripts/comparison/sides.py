# SPDX-License-Identifier: Apache-2.0
"""Lockstep's and PyTorch's programs for one model: all are started, and then take turns."""
import os
import pathlib
import socket
import sys

from gpu.peers import Peer

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTORCH = ROOT / "tests/bench/pytorch_models.py"
PRECISIONS = {
    "fp32": ["amp.opt_level=O0", "amp.dtype=FP32"],
    # PyTorch's GradScaler starts at the same scale.
    "bf16": ["amp.opt_level=O1", "amp.dtype=BF16"],
    "fp16": ["amp.opt_level=O1", "amp.dtype=FP16"],
}
LOSSES = 5


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Side:
    """A program on all its ranks, here or, with a cluster, each on a host of its own; rank 0 speaks for it."""

    def __init__(self, name, command, ranks, folder, cluster=None):
        self.name = name
        threads = max(1, len(os.sched_getaffinity(0)) // ranks)
        environment = {"OMP_NUM_THREADS": threads, "PYTHONDONTWRITEBYTECODE": 1}
        hosts = list(cluster.status()["hosts"]) if cluster else []
        port = free_port()
        self.peers = []
        for rank in range(ranks):
            own = {"RANK": rank, "LOCAL_RANK": 0 if cluster else rank, "WORLD_SIZE": ranks,
                   "LOCAL_WORLD_SIZE": 1 if cluster else ranks, "MASTER_ADDR": hosts[0] if cluster else "127.0.0.1",
                   "MASTER_PORT": port} if ranks > 1 else {}
            own |= environment | ({"GLOO_SOCKET_IFNAME": "eth0"} if cluster else {})
            words = [*cluster.entrance(hosts[rank], ROOT, **own), *command] if cluster else command
            log = folder / f"{name.replace(' ', '-')}-{rank}.log"
            self.peers.append(Peer(name, words, os.environ | {key: str(value) for key, value in own.items()}, log))

    @property
    def problem(self):
        return next((peer.problem for peer in self.peers if peer.problem), None)

    @property
    def ready(self):
        return self.peers[0].ready

    @property
    def rounds(self):
        return self.peers[0].rounds

    def wait_ready(self, limit):
        for peer in self.peers:
            peer.wait_ready(0.1 if self.problem else limit)

    def take_turn(self, limit):
        if self.problem:
            return
        for peer in self.peers:
            peer.start_turn()
        for peer in self.peers:
            peer.end_turn(limit)

    def peak(self):
        """(most that a rank has held, the same less what it held before there was a model), in bytes."""
        last = [peer.rounds[-1] for peer in self.peers]
        return (max(each["peak_resident"] for each in last),
                max(each["peak_resident"] - each["resident_at_start"] for each in last))

    def close(self):
        for peer in self.peers:
            peer.close()


def lockstep(binary, folder, precision, arguments):
    command = [binary, folder / "job.pbtxt", "--device", "cpu", "--losses", LOSSES, "--seconds", arguments.seconds,
               *PRECISIONS[precision]]
    return Side(f"Lockstep {precision}", command, arguments.ranks, folder, arguments.cluster)


def pytorch(python, model, folder, precision, arguments, compiled):
    command = [python, "-B", PYTORCH, "run", model, folder, "--dtype", precision, "--losses", LOSSES, "--seconds",
               arguments.seconds, *(["--compile"] if compiled else [])]
    return Side(f"PyTorch {precision}{' compiled' if compiled else ''}", command, arguments.ranks, folder, arguments.cluster)


def measure(binary, python, model, folder, arguments):
    """Of one model {side's name: {losses, step_ms [a round each], peak, growth} or {problem}}."""
    sides = []
    try:
        for precision in arguments.dtype:
            made = [lockstep(binary, folder, precision, arguments)]
            made += [pytorch(python, model, folder, precision, arguments, compiled)
                     for compiled in ([False, True] if arguments.compile else [False])]
            sides += made
            for side in made:  # one pair at a time: what warms up alone is warm sooner
                side.wait_ready(arguments.limit)
        for number in range(arguments.rounds):
            # The side that goes first changes, so that none always follows the same one.
            for side in sides[number % len(sides):] + sides[:number % len(sides)]:
                side.take_turn(arguments.limit)
            print(f"{model}: round {number + 1} of {arguments.rounds}", file=sys.stderr, flush=True)
        return {side.name: found(side) for side in sides}
    finally:
        for side in sides:
            side.close()


def found(side):
    if side.problem or not side.rounds:
        return {"problem": side.problem or "no round"}
    peak, growth = side.peak()
    return {"losses": side.ready["losses"], "step_ms": [each["step_ms"] for each in side.rounds], "peak": peak,
            "growth": growth}
