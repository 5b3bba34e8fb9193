#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's torchrun on hosts, with a range for their number: where one is lost, the ranks go on without it from the newest
checkpoint, and where it is back, with it. LOCKSTEP_BINARY is the command; LOCKSTEP_PYTHON_WITH_PYTORCH a Python that has
PyTorch, where hosts see it (docs/cluster.md)."""
import json
import os
import sys
import time
import unittest
from pathlib import Path

from cluster import TREE, Cluster, missing
from host import OWN_FOLDERS
from trainings import JOB, LOCKSTEP, ONE_THREAD, Run, unreachable

PYTHON = Path(os.environ.get("LOCKSTEP_PYTHON_WITH_PYTORCH", "/nowhere/python")).absolute()
TORCHRUN = PYTHON.with_name("torchrun")
PATIENCE_S = 180
ENDLESS = 100_000_000  # steps
# Without the second one, a host that comes later waits for an address that is told only once: torchrun of PyTorch 2.15.
VARIABLES = {**ONE_THREAD, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


def torchrun_is_missing():
    if not TORCHRUN.exists():
        return "LOCKSTEP_PYTHON_WITH_PYTORCH names no Python with torchrun beside it"
    hidden = any(PYTHON.is_relative_to(f"/{folder}") for folder in OWN_FOLDERS) and not PYTHON.is_relative_to(TREE)
    return f"hosts do not see {PYTHON}" if hidden else ""


class Torchrun(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(f"torchrun-test-{os.getpid()}")
        self.addCleanup(self.cluster.down)
        self.cluster.up(3)
        self.run_of = Run(self.cluster.state / "shared/run")

    def start(self, host, steps):
        train = [LOCKSTEP, "train", JOB, "--run-dir", "/shared/run", "--device", "cpu", "--set", f"train.steps={steps}", "--set",
                 "schedule=unset", "--set", "train.eval_every=0", "--set", "checkpoint.every_steps=50", "--set",
                 "comm.timeout_s=5"]
        elastic = ["--nnodes", "2:3", "--max-restarts", "10", "--nproc-per-node", "1", "--rdzv-id", "elastic", "--rdzv-backend",
                   "c10d", "--rdzv-endpoint", "a:29500", "--no-python"]
        with open(self.cluster.state / f"torchrun-{host}", "ab") as log:
            return self.cluster.start(host, TORCHRUN, *elastic, *train, environment=VARIABLES, stdout=log, stderr=log)

    def lines(self):
        try:
            return [json.loads(line) for line in (self.run_of.run_dir / "metrics.jsonl").read_text().splitlines()]
        except FileNotFoundError:
            return []

    def ranks(self):
        """Of the newest step."""
        return next((len(line["wait_ms_of_ranks"]) for line in reversed(self.lines()) if "wait_ms_of_ranks" in line), 0)

    def resumed_from(self):
        return [line["step"] for line in self.lines() if line.get("event") == "resumed"]

    def wait_for(self, reached, what):
        end = time.monotonic() + PATIENCE_S
        while not reached():
            if time.monotonic() > end:
                logs = "\n".join(log.read_text(errors="replace") for log in sorted(self.cluster.state.glob("torchrun-*")))
                self.fail(f"not within {PATIENCE_S} s: {what}\n{logs}")
            time.sleep(0.2)

    def test_ranks_go_on_without_a_lost_host_and_with_it_once_it_is_back(self):
        running = {host: self.start(host, ENDLESS) for host in "abc"}
        self.wait_for(lambda: self.run_of.step() > 60, "step 60 with three hosts")
        self.assertEqual(self.ranks(), 3)
        self.cluster.power("c", False)
        running.pop("c")
        self.wait_for(lambda: self.ranks() == 2, "a step without host c")
        self.assertGreaterEqual(self.resumed_from()[-1], 50)
        self.cluster.power("c", True)
        running["c"] = self.start("c", ENDLESS)
        self.wait_for(lambda: self.ranks() == 3, "a step with host c again")
        self.assertGreater(self.resumed_from()[-1], self.resumed_from()[-2])


if __name__ == "__main__":
    if reason := missing() or unreachable() or torchrun_is_missing():
        print(f"skipped: {reason}", file=sys.stderr)
        sys.exit(77)
    unittest.main(verbosity=2)
