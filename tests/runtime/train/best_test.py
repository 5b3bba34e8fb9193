# SPDX-License-Identifier: Apache-2.0
"""The best checkpoint is kept, and a run that no longer improves ends."""
import json
import math
import os
import shutil
import struct
import subprocess
import unittest

from runs import DIGITS, LOCKSTEP, RANK_COUNTS, RunTest, npy, require_mpi

EVALUATED = ("train.eval_every=10", "data.eval_batch=50")
BEST = ("checkpoint.best=eval.accuracy",)
PATIENT = ("train.early_stopping.metric=eval.loss", "train.early_stopping.patience=2",
           "train.early_stopping.min_delta=0.15")
# A learning rate behind which the accuracy is that of a guess.
SPOILS = "optimizer.sgd.lr=3"


def events(run, name):
    return [line for line in run.lines if line.get("event") == name]


def best_folders(run):
    return sorted(path.name for path in (run.directory / "best").iterdir())


class Best(RunTest):
    def test_the_best_weights_are_kept_on_any_number_of_ranks(self):
        for ranks in RANK_COUNTS:
            with self.subTest(ranks=ranks):
                run = self.train(f"run{ranks}", "train.steps=60", *EVALUATED, *BEST, ranks=ranks)
                evaluations = {line["step"]: line["accuracy"] for line in events(run, "eval")}
                best = max(evaluations, key=lambda step: (evaluations[step], -step))
                self.assertEqual(best_folders(run), [f"step-{best:08}"])
                self.assertEqual((events(run, "best")[-1]["step"], events(run, "best")[-1]["value"]),
                                 (best, evaluations[best]))

    def test_a_pipe_in_place_of_the_best_is_an_error_before_the_first_step(self):
        (self.folder / "run").mkdir()
        os.mkfifo(self.folder / "run/best")
        run = self.train("run", "train.steps=60", *EVALUATED, *BEST, code=4)
        self.assertRegex(run.output, "cannot read .*/best: Not a directory")
        self.assertEqual(run.steps, [])

    def test_a_run_that_no_longer_improves_ends_and_stays_ended(self):
        run = self.train("run", "train.steps=400", *EVALUATED, *PATIENT)
        step = run.summary["steps"]
        self.assertLess(step, 400)
        self.assertEqual((run.summary["status"], step % 10), ("done", 0))
        self.assertEqual([line["step"] for line in events(run, "stopped_early")], [step])
        evaluations, summary = events(run, "eval"), run.summary
        again = self.train("run", "train.steps=400", *EVALUATED, *PATIENT)
        self.assertEqual((again.summary["steps"], again.digest), (step, run.digest))
        self.assertEqual(len(events(again, "stopped_early")), 1)
        self.assertEqual(events(again, "eval"), evaluations)
        self.assertEqual(again.summary, summary)

    def test_a_run_that_is_done_tells_its_evaluation_once(self):
        settings = ("train.steps=10", "train.eval_every=0", "data.eval_batch=50")
        evaluations = events(self.train("run", *settings), "eval")
        self.assertEqual([line["step"] for line in evaluations], [10])
        self.assertEqual(events(self.train("run", *settings), "eval"), evaluations)
        # With other numbers it is another evaluation.
        digits = DIGITS.parent / "data" / "digits"
        other = self.train("run", *settings, f'data.eval.idx.images="{digits}/train-images-idx3-ubyte.gz"',
                           f'data.eval.idx.labels="{digits}/train-labels-idx1-ubyte.gz"')
        self.assertEqual(len(events(other, "eval")), 2)

    def test_a_resumed_run_keeps_and_ends_as_the_uninterrupted_one(self):
        settings = ("train.steps=400", "checkpoint.every_steps=10", "checkpoint.keep=0", *EVALUATED, *BEST, *PATIENT)
        whole = self.train("whole", *settings)
        # Killed where the checkpoint of a step is written, behind its evaluation.
        self.start("cut", *settings, "fault=[{kill{step:20 phase:SAVE}}]").finish()
        resumed = self.train("cut", *settings)
        self.assertEqual(resumed.digest, whole.digest)
        self.assertEqual(resumed.summary["steps"], whole.summary["steps"])
        self.assertEqual(best_folders(resumed), best_folders(whole))
        self.assertEqual([(line["step"], line["loss"]) for line in events(resumed, "eval")],
                         [(line["step"], line["loss"]) for line in events(whole, "eval")])

    def test_an_evaluation_that_the_checkpoint_does_not_know_is_made_up_for(self):
        self.train("run", "train.steps=20", *EVALUATED)
        run = self.train("run", "train.steps=30", *EVALUATED, *BEST)
        self.assertEqual(events(run, "best")[0]["step"], 20)

    def test_the_best_weights_are_those_of_the_run_that_goes_on(self):
        settings = ("checkpoint.every_steps=10", "checkpoint.keep=0", *EVALUATED, *BEST)
        whole = self.train("run", "train.steps=40", *settings)
        self.assertGreater(best_folders(whole), ["step-00000010"])
        # From step 10 on with a rate that spoils the weights: what was best behind it is not this run's, and those of
        # step 10 are gone, whose accuracy none reaches again.
        other = self.train("run", "train.steps=30", *settings, SPOILS, resume=whole.checkpoint(10))
        accuracy = {line["step"]: line["accuracy"] for line in events(other, "eval")}
        self.assertGreater(accuracy[10], max(accuracy[20], accuracy[30]))
        best = max((20, 30), key=accuracy.get)
        self.assertEqual(best_folders(other), [f"step-{best:08}"])
        self.assertEqual((events(other, "best")[-1]["step"], events(other, "best")[-1]["value"]),
                         (best, accuracy[best]))

    def test_metrics_that_cannot_be_copied_do_not_stop_a_resume(self):
        first = self.train("run", "train.steps=20", "checkpoint.every_steps=10", "checkpoint.keep=0", *EVALUATED, *BEST)
        metrics = first.directory / "metrics.jsonl"
        metrics.unlink()
        metrics.symlink_to(metrics.name)  # to itself
        # What is best behind step 10 is set aside, and the metrics of its steps with it.
        again = self.train("run", "train.steps=20", *EVALUATED, *BEST, resume=first.checkpoint(10))
        self.assertEqual(again.summary["steps"], 20)
        self.assertRegex(again.output, r"cannot copy \S*metrics.jsonl to")

    def test_damaged_best_weights_do_not_stop_a_resume(self):
        # Step 25 has no evaluation but that of the run's end, which is not made up for.
        first = self.train("run", "train.steps=25", *EVALUATED, *BEST)
        for manifest in (first.directory / "best").glob("*/manifest.json"):
            manifest.write_text("{", encoding="utf-8")
        again = self.train("run", "train.steps=30", *EVALUATED, *BEST, SPOILS)
        self.assertEqual(again.summary["steps"], 30)
        self.assertIn("the best weights are lost", again.output)
        accuracy = {line["step"]: line["accuracy"] for line in events(again, "eval")}
        self.assertGreater(accuracy[20], accuracy[30])  # of which the checkpoint knows
        self.assertEqual(best_folders(again), ["step-00000030"], "the best of those that are left")

    def test_the_evaluation_at_a_runs_end_counts_when_it_goes_on(self):
        first = self.train("run", "train.steps=25", *EVALUATED, *BEST)
        best = events(first, "best")[-1]
        later = self.train("run", "train.steps=40", *EVALUATED, *BEST)
        for line in events(later, "best"):
            if line["step"] > 25:
                self.assertGreater(line["value"], best["value"])

    def test_a_metric_that_there_is_not_is_refused_before_anything_is_made(self):
        run = self.train("run", "checkpoint.best=eval.acuracy", code=2)
        self.assertIn("there are eval.loss, eval.accuracy", run.output)
        self.assertFalse(run.directory.exists())


class NotFinite(RunTest):
    """An evaluation whose loss is NaN is neither the best one nor a reason to end as if all were well."""
    JOB = """
name: "flags" seed: 5
model { mlp { hidden: 4 } }
data {
  global_batch: 8 eval_batch: 4
  train { arrays { features: "x.npy" targets: "y.npy" } }
  eval { arrays { features: "bad.npy" targets: "y.npy" } }
}
optimizer { sgd { lr: 0.01 } }
train { steps: 6 eval_every: 2 early_stopping { metric: "eval.loss" patience: 1 } }
checkpoint { best: "eval.accuracy" every_steps: 1 }
"""

    def setUp(self):
        super().setUp()
        values = [(i * 7 % 5) / 5 for i in range(48)]
        for name, bad in (("x", None), ("bad", 3 * 6 + 1)):  # sample 6, in the second batch of 4
            numbers = [math.nan if i == bad else value for i, value in enumerate(values)]
            (self.folder / f"{name}.npy").write_bytes(npy("<f4", (16, 3), struct.pack("<48f", *numbers)))
        (self.folder / "y.npy").write_bytes(npy("|u1", (16,), bytes(i % 2 for i in range(16))))
        self.job = self.folder / "flags.pbtxt"
        self.job.write_text(self.JOB, encoding="utf-8")

    def test_an_evaluation_without_a_loss_ends_the_run_by_name(self):
        for ranks in RANK_COUNTS:
            with self.subTest(ranks=ranks):
                run = self.train(f"run{ranks}", job=self.job, ranks=ranks, code=5)
                self.assertIn("the loss of the evaluation at step 2 is nan; the first batch without a finite one has "
                              "samples 4 to 7", run.output)
                self.assertNotIn("-nan", run.output)
                self.assertEqual((run.summary["status"], run.summary["exit_code"]), ("failed", 5))
                self.assertEqual([line["loss"] for line in events(run, "eval")], [None])
                self.assertEqual(events(run, "best") + events(run, "stopped_early"), [])
                self.assertFalse((run.directory / "best").exists() and best_folders(run))

    def test_the_evaluation_of_a_checkpoint_without_a_loss_fails(self):
        run = self.train("run", "train.eval_every=0", "train.early_stopping=unset", "train.steps=2", job=self.job, code=5)
        self.assertIn("at step 2", run.output)
        for ranks in RANK_COUNTS:
            command = [LOCKSTEP, "eval", str(self.job), "--checkpoint", str(run.directory), "--nproc", str(ranks), "--json"]
            told = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(told.returncode, 5, told.stderr)
            self.assertIn("the loss of the evaluation is nan", told.stderr)
            self.assertIsNone(json.loads(told.stdout)["loss"])

    def test_mpirun_does_not_end_an_evaluation_that_fails(self):
        require_mpi()
        run = self.train("run", "train.eval_every=0", "train.early_stopping=unset", "train.steps=2", job=self.job, code=5)
        code = self.folder / "code"
        wrapper = self.folder / "mpirun"
        wrapper.write_text(f'#!/bin/sh\n{shutil.which("mpirun")} "$@"\ncode=$?\necho $code > {code}\nexit $code\n')
        wrapper.chmod(0o755)
        command = [LOCKSTEP, "eval", str(self.job), "--checkpoint", str(run.directory), "--nproc", "2"]
        environment = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"}
        told = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        self.assertEqual((told.returncode, code.read_text()), (5, "0\n"), told.stderr)
        self.assertEqual(told.stderr.count("lockstep: error"), 1, told.stderr)


if __name__ == "__main__":
    unittest.main()
