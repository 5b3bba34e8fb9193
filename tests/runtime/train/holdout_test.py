# SPDX-License-Identifier: Apache-2.0
"""A share of the training data is held out for evaluation: the same on any number of ranks, and seen by resume."""
import json
import subprocess
import unittest

from runs import LOCKSTEP, RANK_COUNTS, SAVE_ALWAYS, RunTest

JOB = """
seed: 3
model { mlp { hidden: 8 } }
data { global_batch: 16 train { csv { files: "t.csv" } } eval_share: 0.2 normalize { mean: 50 std: 30 } }
optimizer { sgd { lr: 0.05 momentum: 0.9 } }
train { steps: 12 eval_every: 6 }
checkpoint { every_steps: 6 keep: 0 }
"""


def rows(begin, end):
    return "".join(f"{i % 101},{i // 7},{'even' if i % 2 == 0 else 'odd'}\n" for i in range(begin, end))


class HoldOut(RunTest):
    def setUp(self):
        super().setUp()
        (self.folder / "t.csv").write_text("a,b,kind\n" + rows(0, 300), encoding="utf-8")
        self.job = self.folder / "job.pbtxt"
        self.job.write_text(JOB, encoding="utf-8")

    def lockstep(self, *arguments, code=0):
        done = subprocess.run([LOCKSTEP, *map(str, arguments)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_any_number_of_ranks_evaluates_the_same_samples(self):
        results = []
        for ranks in RANK_COUNTS + (3,) * (len(RANK_COUNTS) - 1):
            run = self.train(f"run{ranks}", job=self.job, ranks=ranks)
            results.append([line for line in run.lines if line.get("event") == "eval"])
        for evaluations in results:
            self.assertEqual(2, len(evaluations))
            for one, other in zip(evaluations, results[0]):
                self.assertEqual(one["accuracy"], other["accuracy"])
                self.assertAlmostEqual(one["loss"], other["loss"], delta=1e-4)
        plan = json.loads(self.lockstep("validate", self.job, "--json"))["plan"]
        samples = plan["eval"]["samples"]
        self.assertEqual(300, plan["train"]["samples"] + samples)
        self.assertTrue(30 <= samples <= 95, samples)
        printed = json.loads(self.lockstep("eval", self.job, "--checkpoint", self.folder / "run1", "--json", "--device", "cpu"))
        self.assertEqual(samples, printed["samples"])
        for data, count in (("eval", samples), ("train", 300 - samples)):
            out = self.folder / f"{data}.jsonl"
            self.lockstep("infer", self.job, "--checkpoint", self.folder / "run1", "--data", data, "--out", out, "--device",
                          "cpu")
            self.assertEqual(count, len(out.read_text(encoding="utf-8").splitlines()))

    def test_a_resume_goes_on_to_the_same_bits_and_sees_changed_data(self):
        whole = self.train("whole", *SAVE_ALWAYS, job=self.job)
        rest = self.train("rest", *SAVE_ALWAYS, job=self.job, resume=whole.checkpoint(6))
        self.assertEqual(rest.digest, whole.digest)
        self.assertNotIn("the data changed", rest.output)
        (self.folder / "t.csv").write_text("a,b,kind\n" + rows(0, 330), encoding="utf-8")
        more = self.train("more", *SAVE_ALWAYS, job=self.job, resume=whole.checkpoint(6))
        self.assertIn("the data changed: data.train: ", more.output)

    def test_a_class_without_a_sample_that_is_held_out_is_named(self):
        with (self.folder / "t.csv").open("a", encoding="utf-8") as table:
            # One of so few falls to training.
            table.write("".join(f"{i},7,rare{i}\n" for i in range(12)))
        for said in (self.lockstep("validate", self.job), self.train("run", job=self.job).output):
            self.assertRegex(said, r"data.eval_share: class.* \(\"rare\d+\"\).* no sample held out")

    def test_it_stands_in_place_of_evaluation_data(self):
        both = self.lockstep("validate", self.job, "--set", 'data.eval={csv{files: "t.csv"}}', code=2)
        self.assertIn("data.eval_share: stands in place of data.eval", both)
        for share in ("1", "-0.1"):
            self.assertIn("data.eval_share: must be >= 0 and < 1",
                          self.lockstep("validate", self.job, "--set", f"data.eval_share={share}", code=2))
        none = self.lockstep("validate", self.job, "--set", "data.eval_share=1e-9", code=2)
        self.assertIn("data.eval_share: 1e-09 holds out none of the 300 samples", none)
        self.assertIn("data.eval_share", self.lockstep("validate", self.job, "--set", "data.eval_share=0", code=2))


if __name__ == "__main__":
    unittest.main()
