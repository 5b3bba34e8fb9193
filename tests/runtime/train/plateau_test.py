# SPDX-License-Identifier: Apache-2.0
"""The learning rate falls where evaluations no longer improve: schedule.reduce_on_plateau."""
import json
import subprocess
import unittest

from runs import LOCKSTEP, RANK_COUNTS, RunTest

# No evaluation improves on the first one by so much: behind steps 8 and 16 the rate is halved.
SCHEDULE = ("schedule={reduce_on_plateau{factor:0.5 patience:0 threshold:100 threshold_mode:ABSOLUTE cooldown:1 "
            "warmup_steps:2}}")
SETTINGS = ("train.steps=24", "train.eval_every=4", "data.eval_batch=50", "optimizer.sgd.lr=0.08",
            "amp={opt_level:O0}", SCHEDULE)
RATES = [0.04, 0.08] + [0.08] * 6 + [0.04] * 8 + [0.02] * 8


def reductions(run):
    return [(line["step"], line["lr"]) for line in run.lines if line.get("event") == "lr_reduced"]


class Plateau(RunTest):
    def test_the_rate_falls_on_any_number_of_ranks(self):
        for ranks in RANK_COUNTS:
            with self.subTest(ranks=ranks):
                run = self.train(f"run{ranks}", *SETTINGS, ranks=ranks)
                self.assertEqual(run.column("lr"), RATES)
                self.assertEqual(reductions(run), [(8, 0.04), (16, 0.02)], "none behind the last step")
                best = next(line["loss"] for line in run.lines if line.get("event") == "eval")
                self.assertIn(f"learning rate 0.04 after step 8: eval.loss has not improved on {best:.6g} for 1 evaluation",
                              run.output)

    def test_a_resumed_run_has_the_bits_of_one_that_was_never_stopped(self):
        whole = self.train("whole", *SETTINGS, "checkpoint.every_steps=1", "checkpoint.keep=0")
        for step in (7, 8, 9, 15, 16):
            rest = self.train(f"from-{step}", *SETTINGS, resume=whole.checkpoint(step))
            self.assertEqual(rest.column("lr"), RATES[step:])
            self.assertEqual(rest.digest, whole.digest, f"resumed from step {step}")

    def test_more_steps_go_on_where_the_last_evaluation_left(self):
        whole = self.train("whole", *SETTINGS)
        self.train("run", *SETTINGS, "train.steps=16")
        run = self.train("run", *SETTINGS)
        self.assertEqual((run.column("lr"), run.digest), (RATES, whole.digest))
        self.assertEqual(reductions(run), [(8, 0.04), (16, 0.02)])

    def test_the_count_of_reductions_is_kept_and_the_jobs_numbers_apply(self):
        self.train("run", *SETTINGS, "train.steps=12")
        quarter = SCHEDULE.replace("factor:0.5", "factor:0.25")
        run = self.train("run", *SETTINGS, quarter, "optimizer.sgd.lr=0.16")
        self.assertEqual(run.column("lr"), RATES[:12] + [0.04] * 4 + [0.01] * 8)
        run = self.train("run", *SETTINGS, "schedule={constant{}}", "train.steps=26")
        self.assertEqual(run.column("lr")[24:], [0.08] * 2, "another schedule knows no reductions")

    def test_what_no_evaluation_gives_is_refused_by_name(self):
        def message(*settings):
            command = [LOCKSTEP, "validate", str(self.job), "--json"]
            for setting in settings:
                command += ["--set", setting]
            told = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(told.returncode, 2, told.stderr)
            return [(found["path"], found["message"]) for found in json.loads(told.stdout)["diagnostics"]]

        self.job = self.command("run")[2]
        self.assertEqual(message(*SETTINGS, "train.eval_every=0"),
                         [("schedule.reduce_on_plateau", "needs train.eval_every")])
        self.assertEqual(message(*SETTINGS, "schedule.reduce_on_plateau.metric=eval.acuracy"),
                         [("schedule.reduce_on_plateau.metric", '"eval.acuracy" is no metric of this job\'s evaluation; '
                           "there are eval.loss, eval.accuracy, eval.top5_accuracy")])


if __name__ == "__main__":
    unittest.main()
