# SPDX-License-Identifier: Apache-2.0
"""A running mean of the weights: the formula, alike on any number of ranks, saved, resumed, evaluated and handed on."""
import json
import subprocess
import unittest

from runs import DIGITS, FP32, LOCKSTEP, RANK_COUNTS, SAVE_ALWAYS, RunTest, faults, read_tensors, require_mpi

DECAY = 0.9
MEAN = (f"train.ema.decay={DECAY}",)
SHORT = ("train.steps=8",)
# As in ranks_test.py.
ROUNDING = 5e-5


def of(tensors, kind):
    return {name.removeprefix(kind + "/"): values for name, values in tensors.items() if name.startswith(kind + "/")}


class Mean(RunTest):
    def evaluated(self, run, *options, command="eval"):
        done = subprocess.run([LOCKSTEP, command, str(DIGITS), "--device", "cpu", "--checkpoint", str(run), "--json",
                               *map(str, options)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def expect_formula(self, run, steps, skipped=(), warmup=0):
        applied = 1
        for step in range(2, steps + 1):
            before, now = run.tensors(step - 1), run.tensors(step)
            if step in skipped:
                self.assertEqual(of(now, "mean"), of(before, "mean"), step)
                continue
            applied += 1
            decay = min(DECAY, (1 + applied) / (warmup + applied)) if warmup else DECAY
            for name, values in of(now, "mean").items():
                expected = [decay * mean + (1 - decay) * weight
                            for mean, weight in zip(of(before, "mean")[name], of(now, "model")[name], strict=True)]
                self.assert_close(values, expected, 1e-6, (step, name))

    def test_the_mean_is_that_of_the_weights_of_every_applied_step(self):
        run = self.train("run", *SHORT, *MEAN, *SAVE_ALWAYS, faults("overflow", "step:3 rank:0"))
        self.assertEqual(of(run.tensors(), "mean").keys(), of(run.tensors(), "model").keys())
        self.expect_formula(run, 8, skipped=(3,))

    def test_the_mean_warms_up(self):
        run = self.train("run", *SHORT, *MEAN, "train.ema.warmup=10", *SAVE_ALWAYS)
        self.expect_formula(run, 8, warmup=10)

    def test_one_two_and_three_ranks_hold_the_same_mean(self):
        require_mpi()
        settings = (*SHORT, *FP32, *MEAN, "comm.digest_every=2")
        reference = self.train("1", *settings)
        for ranks in (2, 3):
            run = self.train(str(ranks), *settings, ranks=ranks)
            self.assert_same_to_rounding(run, reference, ROUNDING)
            self.assertAlmostEqual(run.summary["eval"]["loss"], reference.summary["eval"]["loss"], delta=1e-4)

    def test_a_resumed_run_has_the_bits_of_one_that_was_never_stopped(self):
        settings = (*SHORT, *MEAN, "train.ema.warmup=3", *SAVE_ALWAYS, "train.eval_every=2")
        for ranks in RANK_COUNTS:
            with self.subTest(ranks=ranks):
                whole = self.train(f"whole{ranks}", *settings, ranks=ranks)
                rest = self.train(f"rest{ranks}", *settings, ranks=ranks, resume=whole.checkpoint(5))
                self.assertEqual(rest.digest, whole.digest)
                self.assertEqual(rest.tensors(), whole.tensors())
                self.assertEqual(rest.summary["eval"], whole.summary["eval"])

    def test_the_mean_changes_nothing_of_the_training(self):
        plain = self.train("plain", *SHORT, "train.eval_every=3")
        with_mean = self.train("mean", *SHORT, *MEAN, "train.eval_every=3")
        self.assertEqual(with_mean.digest, plain.digest)
        self.assertEqual(with_mean.column("loss"), plain.column("loss"))
        self.assertEqual(of(plain.tensors(), "mean"), {})

    def test_evaluations_are_of_the_mean_and_say_so(self):
        run = self.train("run", *SHORT, *MEAN, "checkpoint.best=eval.loss", "train.eval_every=4")
        lines = [line for line in run.lines if line.get("event") == "eval"]
        self.assertEqual([line["weights"] for line in lines], ["mean"] * 2)
        mean = self.evaluated(run.directory)
        self.assertEqual((mean["loss"], mean["weights"]), (lines[-1]["loss"], "mean"))
        raw = self.evaluated(run.directory, "--raw-weights")
        self.assertNotEqual(raw["loss"], mean["loss"])
        self.assertNotIn("weights", raw)
        best = self.evaluated(run.directory / "best")
        self.assertEqual(best["loss"], min(line["loss"] for line in lines))

    def test_predictions_are_of_the_mean_or_of_the_raw_weights(self):
        run = self.train("run", *SHORT, *MEAN)
        mean, raw = self.folder / "mean.csv", self.folder / "raw.csv"
        self.assertEqual(self.evaluated(run.directory, "--out", mean, command="infer")["weights"], "mean")
        self.assertNotIn("weights", self.evaluated(run.directory, "--out", raw, "--raw-weights", command="infer"))
        self.assertNotEqual(mean.read_bytes(), raw.read_bytes())

    def test_a_new_run_starts_from_the_mean_of_another(self):
        first = self.train("first", *SHORT, *MEAN)
        # A rate that changes no bit of a weight.
        second = self.train("second", "train.steps=1", f"init_from.path={first.directory}", "optimizer.sgd.lr=1e-30",
                            "schedule={constant{}}", *MEAN)
        mean = of(first.tensors(), "mean")
        self.assertEqual(of(second.tensors(), "model"), mean)
        self.assertEqual(of(second.tensors(), "mean"), mean)

    def test_a_resume_with_or_without_a_mean_that_was_not_there_is_refused(self):
        with_mean = self.train("with", "train.steps=2", *MEAN)
        without = self.train("without", "train.steps=2")
        for name, settings, words in ((with_mean, (), "was saved with a mean"),
                                      (without, MEAN, "was saved without a mean")):
            run = self.train(name.directory.name, "train.steps=4", *settings, code=2)
            self.assertIn(words, run.output)

    def test_a_decay_that_is_none_is_refused(self):
        run = self.train("run", "train.ema.decay=1", code=2)
        self.assertIn("train.ema.decay", run.output)

    def test_the_mean_is_exported(self):
        job = self.folder / "job.pbtxt"
        job.write_text("""
model { resnet { depth: 18 stem: CIFAR width: 8 } }
data { global_batch: 8 train { synthetic { samples: 32 shape: [16, 16, 3] classes: 4 } } }
optimizer { sgd { lr: 0.1 } }
train { steps: 3 ema { decay: 0.5 } }
""", encoding="utf-8")
        run = self.train("run", job=job)
        written = {}
        for options in ((), ("--raw-weights",)):
            out = self.folder / f"{len(options)}.safetensors"
            subprocess.run([LOCKSTEP, "export", str(job), "--checkpoint", str(run.directory), "--out", str(out),
                            *options], check=True, capture_output=True)
            written[len(options)] = read_tensors(out)["fc.bias"]
        self.assertEqual(list(written[0]), list(run.tensors()["mean/classifier.bias"]))
        self.assertEqual(list(written[1]), list(run.tensors()["model/classifier.bias"]))


if __name__ == "__main__":
    unittest.main()
