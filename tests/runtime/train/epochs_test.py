# SPDX-License-Identifier: Apache-2.0
"""train.epochs: the steps follow from the samples, and all that follows from steps is as if the job gave these."""
import json
import subprocess
import unittest

from runs import CONFIGS, LOCKSTEP, RANK_COUNTS, RunTest

MLP = CONFIGS / "digits_mlp.pbtxt"
# 1500 samples: 4 steps an epoch, of which the last one is smaller.
BATCHES = ("data.global_batch=400", "schedule={cosine{}}", "train.eval_every=0")


class Epochs(RunTest):
    def tell(self, *arguments, code=0):
        told = subprocess.run([LOCKSTEP, *arguments], capture_output=True, text=True, check=False, cwd=self.folder)
        self.assertEqual(told.returncode, code, told.stderr)
        return told

    def test_are_as_many_whole_steps_on_one_rank_and_two(self):
        for ranks in RANK_COUNTS:
            with self.subTest(ranks=ranks):
                steps = self.train(f"steps{ranks}", "train.steps=6", *BATCHES, ranks=ranks, job=MLP)
                for epochs in (1.5, 1.3):
                    run = self.train(f"epochs{ranks}-{epochs}", f"train.epochs={epochs}", *BATCHES, ranks=ranks, job=MLP)
                    self.assertEqual(run.summary["steps"], 6)
                    # The schedule falls to the same end.
                    self.assertEqual(run.column("lr"), steps.column("lr"))
                    self.assertEqual(run.digest, steps.digest)

    def test_stand_in_the_run_as_steps_which_it_resumes_and_evaluates_by(self):
        run = self.train("run", "train.epochs=1", *BATCHES, job=MLP)
        job = run.directory / "job.pbtxt"
        self.assertTrue(job.read_text().startswith("# train.steps are 1 epochs\n"))
        self.assertIn("  steps: 4\n", job.read_text())
        self.tell("validate", str(job))
        self.tell("eval", str(job), "--checkpoint", str(run.directory), "--device", "cpu")
        same = self.train("run", "train.epochs=1", *BATCHES, job=MLP)
        self.assertNotIn("the job changed", same.output)
        self.assertIn("all 4 steps are done", same.output)
        more = self.train("run", "train.epochs=2", *BATCHES, job=MLP)
        self.assertIn("the job changed: train.steps: 4 -> 8", more.output)
        self.assertEqual(more.summary["steps"], 8)

    def test_are_planned_before_they_are_trained(self):
        settings = [part for setting in ("train.epochs=2", *BATCHES) for part in ("--set", setting)]
        plan = json.loads(self.tell("validate", str(MLP), "--json", *settings).stdout)["plan"]
        self.assertEqual((plan["steps"], plan["steps_per_epoch"], plan["epochs"]), (8, 4, 2.0))
        self.assertEqual(self.tell("validate", str(MLP), "--print", *settings).stdout.count("steps: 8\n"), 1)
        find = ("find-lr", str(MLP), "--json", "--steps", "20", "--device", "cpu")
        self.assertEqual(self.tell(*find, *settings).stdout, self.tell(*find, "--set", "train.steps=8", *settings[2:]).stdout)
        self.tell("validate", str(MLP), "--dry-run", *settings)

    def test_and_steps_are_one_of_both(self):
        job = self.folder / "both.pbtxt"
        text = MLP.read_text().replace('"data/', f'"{CONFIGS}/data/')
        job.write_text(text.replace("steps: 600", "epochs: 2 steps: 600"))
        self.assertIn('train.steps: cannot stand beside "epochs": only one of them can be used',
                      self.tell("validate", str(job), code=2).stderr)
        job.write_text(text.replace("steps: 600", ""))
        self.assertIn("train.steps: is required: the number of optimizer steps, or train.epochs",
                      self.tell("validate", str(job), code=2).stderr)
        for epochs, problem in (("0", "must be > 0"), ("1e9", "more steps than can be counted")):
            told = self.tell("validate", str(MLP), "--set", f"train.epochs={epochs}", code=2)
            self.assertIn("train.epochs", told.stderr)
            self.assertIn(problem, told.stderr)


if __name__ == "__main__":
    unittest.main()
