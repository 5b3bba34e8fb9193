#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""examples/own_command is the command, with a model, a data set and a loss of its own: arguments PROGRAM LOCKSTEP."""
import os
import subprocess
import sys
import unittest
from pathlib import Path

STOCK = sys.argv.pop()
PROGRAM = sys.argv.pop()
os.environ["LOCKSTEP_BINARY"] = PROGRAM
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/runtime/train"))
from runs import FP32, HAS_MPI, SAVE_ALWAYS, RunTest, read_npy  # noqa: E402

JOB = ROOT / "examples/own_command.pbtxt"
SHORT = (*FP32, "train.steps=12", "train.eval_every=6")


class OwnCommand(RunTest):
    def answer(self, *words, program=PROGRAM, code=0):
        done = subprocess.run([program, *map(str, words)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def expect_refused(self, expected, *settings, program=PROGRAM):
        """Both validate and train say why, and nothing is trained."""
        words = [word for setting in settings for word in ("--set", setting)]
        self.assertIn(expected, self.answer("validate", JOB, *words, program=program, code=2))
        directory = self.folder / "refused"
        self.assertIn(expected, self.answer("train", JOB, "--run-dir", directory, *words, program=program, code=2))
        self.assertFalse((directory / "checkpoints").exists())

    def test_any_number_of_ranks_trains_alike(self):
        one = self.train("one", *SHORT, job=JOB)
        self.assertLess(one.column("loss")[-1], one.column("loss")[0])
        self.assertIn("model      residual, ", one.output)
        self.assertIn(f"own_command eval {self.folder}", one.output)
        for ranks in (2, 3) if HAS_MPI else ():
            several = self.train(f"of-{ranks}", *SHORT, job=JOB, ranks=ranks)
            self.assert_same_to_rounding(several, one, 1e-5)

    def test_a_run_resumes_to_the_same_bits(self):
        whole = self.train("whole", *SHORT, *SAVE_ALWAYS, job=JOB)
        rest = self.train("rest", *SHORT, *SAVE_ALWAYS, job=JOB, resume=whole.checkpoint(5))
        self.assertEqual(rest.digest, whole.digest)

    def test_what_a_run_leaves_is_complete_with_the_program(self):
        run = self.train("run", *SHORT, job=JOB)
        directory = self.folder / "run"
        self.assertIn("step 12", self.answer("inspect", directory))
        job = directory / "job.pbtxt"
        self.assertIn("loss", self.answer("eval", job, "--checkpoint", directory))
        predictions = self.folder / "predictions.npy"
        self.answer("infer", job, "--checkpoint", directory, "--out", predictions)
        self.assertEqual(read_npy(predictions)[1], (100, 1))
        self.answer("export", job, "--checkpoint", directory, "--out", self.folder / "weights.safetensors")
        self.assertIn("out.weight", (self.folder / "weights.safetensors").read_bytes()[:4096].decode("latin-1"))
        self.assertEqual(run.summary["status"], "done")

    def test_the_stock_command_says_what_is_missing(self):
        self.expect_refused('data.train.registered: no data set "sine" is registered in this program, lockstep', program=STOCK)
        data = "{synthetic{samples:64 shape:[1] target_size:1}}"
        self.expect_refused('train.registered_loss: no loss "huber" is registered in this program, lockstep', f"data.train={data}",
                            f"data.eval={data}", program=STOCK)

    def test_names_that_the_program_does_not_have_are_refused(self):
        for setting, expected in (
                ('model.registered.name="residuals"', 'no model "residuals" is registered in this program, own_command; it has residual'),
                ('data.eval.registered.name="cosine"', 'no data set "cosine" is registered in this program, own_command; it has sine'),
                ('train.registered_loss.name="l3"', 'no loss "l3" is registered in this program, own_command; it has huber'),
                ('model.registered.options[0].name="widht"', 'there is no option "widht"; it has width'),
                ('model.registered.options[0].value="4.5"', 'the option "width" must be a whole number, is "4.5"'),
                ('data.train.registered={name:"sine"}', 'the option "samples" has to be given'),
                ('train.registered_loss.options[0].value="small"', 'the option "delta" must be a number, is "small"'),
                ('train.registered_loss.options=[{name:"delta" value:"1"},{name:"delta" value:"2"}]',
                 'train.registered_loss.options[1].name: names "delta" a second time'),
                ('model.registered.name=""', 'model.registered.name: is required'),
                ('train.loss=MSE', 'train.registered_loss: stands in place of train.loss: give one')):
            with self.subTest(setting=setting):
                self.expect_refused(expected, setting)


if __name__ == "__main__":
    unittest.main()
