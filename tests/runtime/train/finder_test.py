# SPDX-License-Identifier: Apache-2.0
"""lockstep find-lr: a model trains while the learning rate rises, and its losses suggest one."""
import json
import subprocess
import unittest

from runs import CONFIGS, DIGITS, FP32, LOCKSTEP, RunTest, faults, require_mpi

MLP = CONFIGS / "digits_mlp.pbtxt"


class Finder(RunTest):
    def find(self, *options, job=DIGITS, settings=(), code=0):
        command = [LOCKSTEP, "find-lr", str(job), "--device", "cpu", *options]
        for setting in settings:
            command += ["--set", setting]
        told = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder)
        self.assertEqual(told.returncode, code, told.stderr)
        return told

    def found(self, *options, **where):
        return json.loads(self.find("--json", *options, **where).stdout)

    def losses(self, result):
        return [point["loss"] for point in result["points"]]

    def test_one_two_and_three_ranks_suggest_the_same_rate(self):
        require_mpi()
        one = self.found(settings=FP32)
        steepest = [point["lr"] for point in one["points"]].index(one["suggestion"])
        self.assertEqual(one["field"], "optimizer.sgd.lr")
        for ranks in (2, 3):
            other = self.found("--nproc", str(ranks), settings=FP32)
            self.assertEqual(other["suggestion"], one["suggestion"])
            # Behind it the rates are such that rounding grows.
            self.assert_close(self.losses(other)[:steepest], self.losses(one)[:steepest], 1e-4)

    def test_it_writes_nothing_and_repeats_its_bits(self):
        first = self.find("--json")
        self.assertEqual(self.find("--json").stdout, first.stdout)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_the_suggestion_trains_and_the_last_rates_do_not(self):
        for job, field in ((DIGITS, "optimizer.sgd.lr"), (MLP, "optimizer.adamw.lr")):
            with self.subTest(job=job.name):
                result = self.found(job=job)
                self.assertEqual((result["field"], len(result["points"])), (field, result["steps"]))
                self.assertLess(result["suggestion"], result["lowest"])
                run = self.train(job.stem, f"{field}={result['suggestion']}", "train.steps=150", "train.eval_every=0",
                                 "schedule={constant{}}", job=job)
                self.assertGreater(run.summary["eval"]["accuracy"], 0.9)
        grown = self.found("--to", "1000", settings=FP32)
        self.assertIn(grown["end"], ("the smoothed loss is above 4 times its lowest value", "the loss is no longer finite"))
        self.assertLess(grown["steps"], 100)

    def test_the_text_has_a_table_and_the_rule(self):
        told = self.find("--steps", "50", "--from", "1e-5")
        result = self.found("--steps", "50", "--from", "1e-5")
        lines = told.stdout.splitlines()
        self.assertEqual(lines[0].split(), ["rate", "loss", "smoothed"])
        self.assertEqual(lines[1].split()[0], "1e-05")
        marked = {word: [line.split()[0] for line in lines if line.endswith(word)] for word in ("steepest", "lowest")}
        self.assertEqual(marked, {"steepest": [f"{result['suggestion']:.3g}"], "lowest": [f"{result['lowest']:.3g}"]})
        self.assertLessEqual(len(lines), 33)
        self.assertNotIn("note", told.stdout)
        self.assertIn("the loss still falls at the last rate: --to may be higher", self.find("--to", "0.01").stdout)
        self.assertIn(f"suggestion  {result['suggestion']:.2g}, where the smoothed loss falls fastest", told.stdout)
        self.assertIn(f" train {DIGITS} --set optimizer.sgd.lr={result['suggestion']:.2g}\n", told.stdout)

    def test_it_begins_with_the_weights_of_a_run_and_leaves_out_its_schedule_and_faults(self):
        plain = self.found()
        other = self.found(settings=("schedule={cosine{warmup_steps:9}}", "optimizer.sgd.lr=7", "train.steps=3",
                                     faults("kill", "step:2"), "train.eval_every=0"))
        self.assertEqual(other, plain)
        self.train("run", "train.steps=60", "train.eval_every=0")
        started = self.found(settings=("init_from.path=" + str(self.folder / "run"),))
        self.assertLess(self.losses(started)[0], 0.5 * self.losses(plain)[0])

    def test_a_step_that_the_loss_scale_skips_is_taken_again(self):
        high = self.found(settings=("amp.loss_scale.init=1e9", "amp.loss_scale.max=1e9"))
        self.assertEqual(high["points"][0]["lr"], 1e-7)
        self.assertEqual([point["lr"] for point in high["points"][:50]],
                         [point["lr"] for point in self.found()["points"][:50]])

    def test_wrong_use_is_a_sentence(self):
        for options, sentence in ((("--from", "1", "--to", "0.1"), "--to: must be > from, is 0.1"),
                                  (("--from", "0"), "--from: must be > 0, is 0"),
                                  (("--steps", "19"), "--steps: must be >= 20, is 19")):
            told = self.find(*options, code=2)
            self.assertIn(sentence, told.stderr)
            self.assertEqual(told.stderr.count("error"), 1, told.stderr)
        self.assertIn("data.global_batch", self.find(settings=("data.global_batch=0",), code=2).stderr)

    def test_a_loss_that_never_falls_suggests_nothing(self):
        for ranks in ((), ("--nproc", "2")):
            if ranks:
                require_mpi()
            told = self.find("--from", "1e-12", "--to", "1e-11", *ranks, code=5)
            self.assertIn("the loss does not fall between the learning rates 1e-12 and 1e-11: all steps are done",
                          told.stderr)
            self.assertEqual((told.stdout, told.stderr.count("lockstep: error")), ("", 1), told.stderr)


if __name__ == "__main__":
    unittest.main()
