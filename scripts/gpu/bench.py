# SPDX-License-Identifier: Apache-2.0
"""Measures Lockstep and PyTorch on the same GPU in turns, round after round."""
import json
import os
import pathlib
import tempfile
import time

from gpu.peers import Peer
from gpu.process import run

DIGITS = "configs/digits_convnet.pbtxt"
# Of GPT-2: 16 texts a step, with the biases that the other side's model has.
TEXTS = "={ samples: 64 shape: 1024 vocabulary: 50304 }"
GPT2 = ["model.gpt.bias=true", "data.global_batch=16", "data.train.synthetic" + TEXTS, "data.eval.synthetic" + TEXTS,
        "train.accumulate=1"]
# By workload: the job, its settings, and the steps of a run of the command.
JOBS = {"mlp": ("configs/recipe_mlp.pbtxt", [], 100), "digits": (DIGITS, [], 400),
        "resnet50": ("configs/resnet50_synthetic.pbtxt", [], 30), "gpt2": ("configs/gpt2_124m.pbtxt", GPT2, 30)}
DTYPES = {"gpt2": "bfloat16"}  # of the other side, where the job's is not fp16
VARIANTS = {"graph": "train.cuda_graph=ON", "no graph": "train.cuda_graph=OFF"}
BOTH = list(VARIANTS)
# Workloads with our variants and PyTorch's modes, in groups whose programs fit into 80 GB together. sgd and adam have
# no job: gpu_bench measures ours.
GROUPS = [{"mlp": (BOTH, ["eager", "compile"]), "digits": (BOTH, ["eager"]),
           "sgd": ([], ["eager"]), "adam": ([], ["eager"])},
          {"gpt2": (BOTH, ["eager", "compile"])},
          {"resnet50": (BOTH, ["eager"])}, {"resnet50": (["graph"], ["compile"])}]

UNTUNED = GROUPS[:-1]  # the last one is for what is compiled


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


class Bench:
    """`raw` is what gpu.figures makes rows of."""

    def __init__(self, root, build, env, python, torch, logs, cache, seconds, rounds):
        self.root, self.programs = root, build / "bin"
        self.python, self.torch, self.logs, self.cache, self.rounds = python, torch, logs, cache, rounds
        # Both sides choose by timing, once, and keep what they chose.
        self.env = {**env, "LOCKSTEP_AUTOTUNE": "on", "LOCKSTEP_PLAN_CACHE": str(cache / "lockstep")}
        self.untuned_env = {**env, "LOCKSTEP_AUTOTUNE": "off", "LOCKSTEP_PLAN_CACHE": str(cache / "untuned")}
        self.end = time.monotonic() + seconds
        self.raw = {"gpu_bench": [], "steps": {}, "train": {}, "digits": {}, "skipped": [], "problems": []}

    def left(self):
        return self.end - time.monotonic()

    def skip(self, what, why):
        self.raw["skipped"].append({"what": what, "why": why})

    def log(self, *names):
        return self.logs / ("-".join(names).replace(" ", "-").lower() + ".log")

    def pytorch(self, workload, mode, keep=True):
        # What was compiled and tuned once is found again by the next start.
        env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(self.cache / "torch"), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [self.python, self.root / "tests/bench/pytorch_gpu.py", "--workload", workload, "--mode", mode,
                   "--started", time.time(), "--dtype", DTYPES.get(workload, "float16")]
        log = self.log("pytorch" if keep else "tune", "pytorch", workload, mode)
        return Peer(f"PyTorch {mode}", command, env, log, keep)

    def lockstep(self, workload, variant, keep=True, tuned=True):
        job, settings, _ = JOBS[workload]
        command = [self.programs / "step_bench", self.root / job, *settings, VARIANTS[variant],
                   "--started", time.time()]
        log = self.log("step" if keep else "tune", workload, variant, *[] if tuned else ["untuned"])
        return Peer(f"Lockstep, {variant}" + ("" if tuned else ", untuned"), command,
                    self.env if tuned else self.untuned_env, log, keep)

    def tune(self):
        """Has each side compile and choose by timing, one program at a time with the GPU to itself; the measured ones
        find the results in the cache, and so does a later call where the time ends before."""
        chosen = dict.fromkeys((workload, side) for group in GROUPS for workload, (variants, modes) in group.items()
                               for side in [*variants[:1], *(mode for mode in modes if mode == "compile")])
        for number, (workload, side) in enumerate(chosen):
            if side == "compile" and not self.torch:
                continue
            # What is measured later needs its time too.
            limit = min(240, 0.6 * self.left())
            if limit < 10:
                return self.skip(f"tuning of {len(chosen) - number} programs", "no time was left")
            start = self.pytorch if side == "compile" else self.lockstep
            peer = start(workload, side, keep=False)
            peer.wait_ready(limit)
            peer.close()
            if peer.problem:
                self.skip(f"tuning, {workload}, {peer.name}", peer.problem)
        return None

    def train(self, job, overrides, name, options=()):
        """(summary.json, seconds) of `lockstep train`, or None with the problem noted."""
        with tempfile.TemporaryDirectory(prefix="gpu_check.") as run_dir:
            sets = [word for value in overrides for word in ("--set", value)]
            command = [self.programs / "lockstep", "train", self.root / job, "--device", "cuda", "--run-dir", run_dir,
                       *options, *sets]
            outcome = run(command, max(1, min(120, self.left())), self.log("train", name), env=self.env)
            summary = pathlib.Path(run_dir) / "summary.json"
            if outcome.ok and summary.exists():
                found = json.loads(summary.read_text())
                if str(found.get("device", "")).startswith("cuda"):
                    return found, outcome.seconds
                outcome.output = f"it trained on {found.get('device')}"
        self.raw["problems"].append(f"lockstep train {' '.join([job, *overrides])}: {outcome.why()}")
        return None

    def measure_kernels(self):
        outcome = run([self.programs / "gpu_bench"], max(1, min(90, self.left())), self.log("gpu_bench"), env=self.env)
        self.raw["gpu_bench"] = json_lines(outcome.output)
        if not outcome.ok:
            self.raw["problems"].append(f"gpu_bench {outcome.why()}")
        for line in self.raw["gpu_bench"]:
            if "error" in line:
                self.raw["problems"].append(f"gpu_bench: {line['name']}: {line['error']}")

    def measure_digits(self):
        """The quickstart's job to its end: accuracy, the same bits twice, and two ranks that share the GPU."""
        runs = self.raw["digits"]
        for name, options in (("one rank", ()), ("again", ()), ("two ranks", ("--nproc", 2))):
            done = self.train(DIGITS, [], f"digits {name}", options)
            if done:
                runs[name] = {"summary": done[0], "seconds": done[1]}
        if len({runs[name]["summary"]["weights_digest"] for name in ("one rank", "again") if name in runs}) > 1:
            self.raw["problems"].append("the digits job reached other weights the second time: the GPU's results vary")

    def measure_group(self, group, tuned=True):
        """In turns what the group names; untuned, the first of our variants beside PyTorch without compiling."""
        if self.left() < 20:
            return self.skip(", ".join(group) + ("" if tuned else ", untuned"), "no time was left")
        for workload in group if tuned else ():
            self.measure_command(workload)
        if not tuned:
            group = {workload: (variants[:1], ["eager"]) for workload, (variants, _) in group.items() if variants}
        peers = {workload: [self.lockstep(workload, variant, tuned=tuned) for variant in variants] +
                 [self.pytorch(workload, mode) for mode in modes if self.torch]
                 for workload, (variants, modes) in group.items()}
        deadline = time.monotonic() + min(90, 0.5 * self.left())
        try:
            for peer in [peer for of_workload in peers.values() for peer in of_workload]:
                peer.wait_ready(deadline - time.monotonic())
            for workload, of_workload in peers.items():
                self.measure_workload(workload, of_workload)
        finally:
            for workload, of_workload in peers.items():
                for peer in of_workload:
                    peer.close()
                    self.note(workload, peer)

    def note(self, workload, peer):
        """What a program measured; one that took part in two groups has the rounds of both."""
        of_workload = self.raw["steps"].setdefault(workload, {})
        earlier = of_workload.get(peer.name, {"ready": None, "rounds": []})
        of_workload[peer.name] = {"ready": peer.ready or earlier["ready"], "rounds": earlier["rounds"] + peer.rounds}
        what = f"{workload}, {peer.name}"
        if peer.problem and peer.name.startswith("PyTorch"):
            self.skip(what, peer.problem)
        elif peer.problem:
            self.raw["problems"].append(f"step_bench, {what}: {peer.problem}")
        elif peer.rounds and ", graph" in peer.name and peer.rounds[-1].get("graph_share", 1) < 1:
            self.raw["problems"].append(f"step_bench, {what}: not every step ran as a graph")

    def measure_workload(self, workload, peers):
        for number in range(self.rounds):
            if self.left() < 10:
                return self.skip(f"{workload}, from round {number + 1} on", "no time was left")
            for peer in peers:
                peer.take_turn()

    def measure_command(self, workload):
        """The whole command, alone on the GPU: its start, and its steps with data that is loaded."""
        if workload not in JOBS or workload in self.raw["train"]:
            return
        job, settings, steps = JOBS[workload]
        short = [*settings, f"train.steps={steps}", "train.eval_every=0", "checkpoint.every_steps=0"]
        for number in range(self.rounds if self.left() > 20 else 0):
            done = self.train(job, short, f"{workload} {number}")
            if not done:
                return
            self.raw["train"].setdefault(workload, []).append(done[0])

    def run(self):
        if not self.torch:
            self.skip("PyTorch", "no Python here has it (--python names one)")
        for folder in ("lockstep", "untuned", "torch"):
            (self.cache / folder).mkdir(parents=True, exist_ok=True)
        # Untuned first: it takes a minute or two, and what follows may take all the time that there is.
        for group in UNTUNED:
            self.measure_group(group, tuned=False)
        self.tune()
        self.measure_kernels()
        self.measure_digits()
        for group in GROUPS:
            self.measure_group(group)
        return self.raw


def nproc():
    return len(os.sched_getaffinity(0))
