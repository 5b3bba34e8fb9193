# SPDX-License-Identifier: Apache-2.0
"""train --until: a run that stops behind a step, and goes on from there."""
import unittest

from runs import RunTest, RANK_COUNTS

SETTINGS = ("train.steps=30", "schedule.cosine.warmup_steps=5", "train.eval_every=10", "checkpoint.every_steps=7",
            "checkpoint.keep=0")


class Until(RunTest):
    def evaluated(self, run):
        return [line["step"] for line in run.lines if line.get("event") == "eval"]

    def test_a_run_stops_behind_the_step_and_goes_on_to_the_same_bits(self):
        for ranks in RANK_COUNTS:
            with self.subTest(ranks=ranks):
                whole = self.train(f"whole{ranks}", *SETTINGS, ranks=ranks)
                cut = self.train(f"cut{ranks}", *SETTINGS, ranks=ranks, options=("--until", "20"), code=75)
                self.assertEqual(20, cut.summary["step"])
                self.assertEqual("preempted", cut.summary["status"])
                self.assertEqual([10, 20], self.evaluated(cut))
                self.assertEqual(cut.checkpoint(20), cut.checkpoints[-1])
                self.assertEqual(whole.digest, self.train(f"cut{ranks}", *SETTINGS, ranks=ranks).digest)
                self.assertEqual(self.evaluated(whole), self.evaluated(cut))

    def test_an_evaluation_that_was_cut_off_there_is_made_up_for(self):
        run = self.train("run", *SETTINGS, options=("--until", "20"), code=75)
        metrics = run.directory / "metrics.jsonl"
        lines = metrics.read_text(encoding="utf-8").splitlines(keepends=True)
        whole = [line for line in run.lines if line.get("event") == "eval"]
        metrics.write_text("".join(line for line in lines if '"eval"' not in line or '"step":20' not in line.replace(" ", "")), encoding="utf-8")
        self.assertEqual([10], self.evaluated(run))
        self.train("run", *SETTINGS, options=("--until", "20"), code=75)
        again = [line for line in run.lines if line.get("event") == "eval"]
        self.assertEqual([{**line, "time": 0} for line in whole], [{**line, "time": 0} for line in again])

    def test_a_step_that_the_run_has_behind_it_or_never_comes_to_changes_nothing(self):
        run = self.train("run", *SETTINGS, options=("--until", "20"), code=75)
        self.train("run", *SETTINGS, options=("--until", "10"), code=75)
        self.assertEqual([*range(1, 21)], run.column("step"))
        self.train("run", *SETTINGS, options=("--until", "31"))
        self.assertEqual("done", run.summary["status"])


if __name__ == "__main__":
    unittest.main()
