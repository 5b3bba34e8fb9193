#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""examples/two_branches is the command, with a model of two inputs: arguments PROGRAM LOCKSTEP."""
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

STOCK = sys.argv.pop()
PROGRAM = sys.argv.pop()
os.environ["LOCKSTEP_BINARY"] = PROGRAM
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/runtime/train"))
from runs import FP32, HAS_MPI, RunTest, mpirun_of, read_npy  # noqa: E402

JOB = ROOT / "examples/two_branches.pbtxt"
SHORT = (*FP32, "train.steps=12", "train.eval_every=6")


class TwoBranches(RunTest):
    def output(self, *command, code=0):
        done = subprocess.run([*map(str, command)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def test_any_number_of_ranks_trains_alike(self):
        one = self.train("one", *SHORT, job=JOB)
        self.assertLess(one.column("loss")[-1], one.column("loss")[0])
        self.assertIn("1,000 samples of [8, 8, 1] and [2], 8 classes", one.output)
        for ranks in (2, 3) if HAS_MPI else ():
            self.assert_same_to_rounding(self.train(f"of-{ranks}", *SHORT, job=JOB, ranks=ranks), one, 1e-5)

    def test_a_run_is_complete_with_the_program(self):
        self.train("run", *FP32, job=JOB)
        directory = self.folder / "run"
        for ranks in (1, 2) if HAS_MPI else (1,):
            command = [PROGRAM, "infer", directory / "job.pbtxt", "--checkpoint", directory, "--out", self.folder / f"{ranks}.npy"]
            self.output(*(command if ranks == 1 else mpirun_of(command, command)))
            self.assertEqual(read_npy(self.folder / f"{ranks}.npy")[1], (200, 8))
        accuracy = self.output(PROGRAM, "eval", directory / "job.pbtxt", "--checkpoint", directory)
        # The table decides: without it half of the samples are guessed wrong.
        self.assertGreater(float(re.search(r"accuracy ([\d.]+) %", accuracy).group(1)), 90)
        self.output(PROGRAM, "export", directory / "job.pbtxt", "--checkpoint", directory, "--onnx", self.folder / "m.onnx")
        self.assertIn(b"input_2", (self.folder / "m.onnx").read_bytes())

    def test_validate_tells_of_both_inputs(self):
        self.assertIn("1,000 samples of [8,8,1] and [2] in 8 classes", self.output(PROGRAM, "validate", JOB))

    def test_the_stock_command_says_what_is_missing(self):
        self.assertIn('no data set "bars_and_tables" is registered', self.output(STOCK, "validate", JOB, code=2))

    def test_what_takes_one_input_is_refused(self):
        for setting, expected in (
                ("model={mlp{hidden:8}}", "model.mlp: takes tokens beside its first input, but data.train has [2]"),
                ("model={convnet{block{channels:4}}}", "model: convnet takes one input, and the samples of data.train have 2"),
                ("data.augment={mixup:0.2}", "data.augment.mixup: needs samples of one input; those of data.train are [8, 8, 1] and [2]"),
                ("data.train={synthetic{samples:64 shape:[8,8,1] classes:8}}",
                 'the function of "two_branches" made no model: ')):
            words = [word for each in (setting, "data.eval=unset", "train.eval_every=0") for word in ("--set", each)]
            self.assertIn(expected, self.output(PROGRAM, "validate", JOB, *words, code=2))


if __name__ == "__main__":
    unittest.main()
