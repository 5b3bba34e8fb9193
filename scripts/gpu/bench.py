# SPDX-License-Identifier: Apache-2.0
"""Measures Lockstep and PyTorch on the same GPU in turns, round after round."""
import json
import os
import pathlib
import tempfile
import time

from gpu.peers import Peer
from gpu.process import run

# Workloads in groups whose PyTorch programs fit on the GPU together: name, job, steps of a run, PyTorch's modes.
TRAINING = {"mlp": ("configs/mlp_4096.pbtxt", 400), "digits": ("configs/digits_convnet.pbtxt", 600),
            "resnet50": ("configs/resnet50_synthetic.pbtxt", 60)}
GROUPS = [[("mlp", ("eager", "compile")), ("digits", ("eager",)), ("sgd", ("eager",)), ("adam", ("eager",))],
          [("resnet50", ("eager", "compile"))]]
DIGITS = "configs/digits_convnet.pbtxt"


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


class Bench:
    """`raw` is what gpu.figures makes rows of."""

    def __init__(self, root, build, env, python, torch, out, cache, seconds, rounds):
        self.root, self.lockstep, self.env = root, build / "bin/lockstep", env
        self.gpu_bench = build / "bin/gpu_bench"
        self.python, self.torch, self.out, self.cache, self.rounds = python, torch, out, cache, rounds
        self.script = root / "tests/bench/pytorch_gpu.py"
        self.end = time.monotonic() + seconds
        self.raw = {"gpu_bench": [], "lockstep": {}, "pytorch": {}, "digits": {}, "skipped": [], "problems": []}
        schema = (root / "configs/job.proto").read_text()
        self.variants = {"graph": ["train.cuda_graph=ON"], "no graph": ["train.cuda_graph=OFF"]} \
            if "cuda_graph" in schema else {"": []}

    def left(self):
        return self.end - time.monotonic()

    def skip(self, what, why):
        self.raw["skipped"].append({"what": what, "why": why})

    def train(self, job, overrides, name, options=()):
        """(summary.json, seconds of the command), or None with the problem noted."""
        with tempfile.TemporaryDirectory(prefix="gpu_check.") as run_dir:
            sets = [word for value in overrides for word in ("--set", value)]
            outcome = run([self.lockstep, "train", self.root / job, "--device", "cuda", "--run-dir", run_dir, *options,
                           *sets], max(20, min(120, self.left())), self.out / f"train-{name}.log", env=self.env)
            summary = pathlib.Path(run_dir) / "summary.json"
            if outcome.ok and summary.exists():
                found = json.loads(summary.read_text())
                if str(found.get("device", "")).startswith("cuda"):
                    return found, outcome.seconds
                outcome.output = f"it trained on {found.get('device')}"
        self.raw["problems"].append(f"lockstep train {' '.join([job, *overrides])}: {outcome.why()}")
        return None

    def peer(self, workload, mode, log, keep=True):
        log = self.out / f"{log}-{workload}-{mode}.log"
        return Peer(self.python, self.script, workload, mode, log, self.cache, keep)

    def prepare(self):
        """Starts PyTorch's compilations, whose results stay in the cache, and does not wait for them."""
        if not self.torch:
            return []
        self.cache.mkdir(parents=True, exist_ok=True)
        return [self.peer(name, "compile", "prepare", keep=False)
                for group in GROUPS for name, modes in group if "compile" in modes]

    def measure_kernels(self):
        outcome = run([self.gpu_bench], max(20, min(90, self.left())), self.out / "gpu_bench.log", env=self.env)
        self.raw["gpu_bench"] = json_lines(outcome.output)
        if not outcome.ok:
            self.raw["problems"].append(f"gpu_bench {outcome.why()}")
        for line in self.raw["gpu_bench"]:
            if "error" in line:
                self.raw["problems"].append(f"gpu_bench: {line['name']}: {line['error']}")

    def start_peers(self, group):
        if not self.torch:
            return []
        peers = [self.peer(name, mode, "pytorch") for name, modes in group for mode in modes]
        deadline = time.monotonic() + min(90, 0.5 * self.left())
        for peer in peers:
            peer.wait_ready(deadline - time.monotonic())
            if peer.problem:
                self.skip(f"PyTorch {peer.mode}, {peer.workload}", peer.problem)
        return [peer for peer in peers if not peer.problem]

    def measure_group(self, group):
        if self.left() < 20:
            self.skip(", ".join(name for name, _ in group), "no time was left")
            return
        peers = self.start_peers(group)
        try:
            for name, _ in group:
                self.measure_workload(name, [peer for peer in peers if peer.workload == name])
        finally:
            for peer in peers:
                peer.close()
                measured = {"ready": peer.ready, "rounds": peer.rounds}
                self.raw["pytorch"].setdefault(peer.workload, {})[peer.mode] = measured
                if peer.problem:
                    self.skip(f"PyTorch {peer.mode}, {peer.workload}: the remaining rounds", peer.problem)

    def measure_workload(self, name, peers):
        job, steps = TRAINING.get(name, (None, 0))
        variants = dict(self.variants) if job else {}
        for number in range(self.rounds):
            for variant, overrides in list(variants.items()):
                if self.left() < 10:
                    self.skip(f"{name}, round {number + 1}", "no time was left")
                    return
                sets = [f"train.steps={steps}", "train.eval_every=0", "checkpoint.every_steps=0", *overrides]
                done = self.train(job, sets, f"{name}-{variant or 'default'}-{number}".replace(" ", "-"))
                if done is None:
                    del variants[variant]
                    continue
                self.raw["lockstep"].setdefault(name, {}).setdefault(variant, []).append(done[0])
            for peer in peers:
                peer.take_turn()

    def measure_digits(self):
        """The quickstart's job to its end: accuracy, the same bits twice, and two ranks that share the GPU."""
        for name, options in (("one rank", ()), ("again", ()), ("two ranks", ("--nproc", 2))):
            done = self.train(DIGITS, [], f"digits-whole-{name}".replace(" ", "-"), options)
            if done:
                self.raw["digits"][name] = {"summary": done[0], "seconds": done[1]}
        digests = {self.raw["digits"][name]["summary"]["weights_digest"] for name in ("one rank", "again")
                   if name in self.raw["digits"]}
        if len(digests) > 1:
            self.raw["problems"].append("the digits job reached other weights the second time: the GPU's results vary")

    def run(self):
        if not self.torch:
            self.skip("PyTorch", "no Python here has it (--python names one)")
        self.measure_kernels()
        self.measure_digits()
        for group in GROUPS:
            self.measure_group(group)
        return self.raw


def nproc():
    return len(os.sched_getaffinity(0))
