# SPDX-License-Identifier: Apache-2.0
"""The number of ranks changes nothing but rounding, and two runs alike are the same bits."""
import json
import subprocess
import unittest

from runs import CONFIGS, DIGITS, FP32, LOCKSTEP, RunTest, faults, require_mpi

# Sums in another order came to 2e-6 after these few steps; one wrong sample, dropout mask or share is 1e-3 and more.
ROUNDING = 5e-5


class Ranks(RunTest):
    def compare(self, *settings, ranks=(2, 3), tolerance=ROUNDING, **options):
        reference = self.train("1", *FP32, *settings, **options)
        for count in ranks:
            run = self.train(str(count), *FP32, *settings, ranks=count, **options)
            self.assert_same_to_rounding(run, reference, tolerance)

    def test_one_two_and_three_ranks_train_alike(self):
        self.compare("train.steps=10")

    def test_uneven_last_batches(self):
        # 1500 samples an epoch: 700, 700, 100.
        self.compare("data.global_batch=700", "train.steps=8", "optimizer.sgd.lr=0.02")

    def test_a_rank_without_a_sample(self):
        self.compare("data.global_batch=2", "train.steps=6", "optimizer.sgd.lr=0.02", ranks=[3])

    def test_accumulation(self):
        self.compare("train.accumulate=3", "data.global_batch=100", "train.steps=8")

    def test_adamw_and_clipping(self):
        self.compare("optimizer={adamw{lr:1e-3} clip_norm: 0.5}", "train.steps=8")

    def test_a_skipped_step(self):
        self.compare("train.steps=6", faults("overflow", "step:3 rank:0"))

    def test_accumulating_equals_one_batch(self):
        # Without batch norm, whose statistics are a micro-batch's.
        job = CONFIGS / "digits_mlp.pbtxt"
        whole = self.train("whole", "train.steps=8", job=job)
        parts = self.train("parts", "train.steps=8", "train.accumulate=3", job=job, ranks=2)
        self.assert_same_to_rounding(parts, whole, ROUNDING)

    def test_a_run_goes_on_with_another_number_of_ranks(self):
        settings = (*FP32, "train.steps=10", "checkpoint.every_steps=5", "data.global_batch=400")
        whole = self.train("whole", *settings)
        first = self.train("first", *settings, ranks=2)
        rest = self.train("rest", *settings, ranks=3, resume=first.checkpoint(5))
        self.assert_close(rest.column("loss"), whole.column("loss")[5:], ROUNDING)
        for name, values in rest.tensors().items():
            self.assert_close(values, whole.tensors()[name], ROUNDING, name)

    def test_an_uneven_last_batch_overflows_on_any_number_of_ranks_alike(self):
        # One sample behind a whole batch: a rank that weighted it by the number of ranks would leave fp16's range.
        settings = ("data={train{synthetic{samples:65 shape:8 classes:4}} global_batch:64 eval:{synthetic{samples:8 "
                    "shape:8 classes:4}}}", "amp={opt_level:O1 dtype:FP16 loss_scale{dynamic:false init:65536}}",
                    "model={mlp{hidden:8}}", "train.loss=CROSS_ENTROPY", "train.steps=8", "optimizer={sgd{lr:0.001}}")
        job = CONFIGS / "synthetic_mlp.pbtxt"
        skipped = [self.train(str(count), *settings, ranks=count, job=job).column("skipped") for count in (1, 2, 3)]
        self.assertEqual(skipped[1:], skipped[:1] * 2)

    def test_batch_norm_that_is_not_synchronized_uses_rank_zeros_statistics(self):
        settings = ("comm.sync_batch_norm=false", "comm.digest_every=2", "train.eval_every=3", "train.steps=8",
                    "checkpoint.every_steps=4", "checkpoint.keep=0")
        run = self.train("run", *settings, ranks=2)
        output = subprocess.run([LOCKSTEP, "eval", DIGITS, "--checkpoint", run.directory, "--json"],
                                stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual(json.loads(output)["accuracy"], run.summary["eval"]["accuracy"])
        resumed = self.train("resumed", *settings, ranks=2, resume=run.checkpoint(4))
        self.assertEqual(resumed.tensors(), run.tensors(), "weights, momentum and statistics")

    def test_evaluation_is_the_same_on_any_number_of_ranks(self):
        # Seven samples a step and 297 in all: every share is uneven and the last batch leaves ranks without any.
        settings = (*FP32, "train.steps=20", "data.eval_batch=7")
        trained = self.train("1", *settings)
        expected = trained.summary["eval"]
        self.assertEqual(expected["samples"], 297)
        require_mpi()
        for count in (1, 2, 3):
            output = subprocess.run([LOCKSTEP, "eval", DIGITS, "--checkpoint", trained.directory, "--json", "--nproc",
                                     str(count), *(part for setting in settings for part in ("--set", setting))],
                                    stdout=subprocess.PIPE, check=True).stdout
            found = json.loads(output)
            self.assertEqual((found["samples"], found["accuracy"]), (expected["samples"], expected["accuracy"]))
            self.assertAlmostEqual(found["loss"], expected["loss"], places=6)


class Repetition(RunTest):
    def assert_repeatable(self, *settings, ranks):
        runs = [self.train(name, "train.steps=30", *settings, ranks=ranks) for name in ("a", "b")]
        self.assertEqual(runs[0].column("loss"), runs[1].column("loss"))
        self.assertEqual(runs[0].digest, runs[1].digest)

    def test_two_runs_alike_are_bitwise_equal_in_fp32(self):
        self.assert_repeatable(*FP32, ranks=2)

    def test_two_runs_alike_are_bitwise_equal_in_fp16(self):
        self.assert_repeatable("comm.bucket_mb=0.02", "comm.first_bucket_mb=0.01", ranks=2)

    def test_two_runs_alike_are_bitwise_equal_on_one_rank(self):
        self.assert_repeatable(ranks=1)

    def test_looking_on_and_ways_of_exchange_change_no_bit(self):
        settings = ("train.steps=12", "schedule.cosine.warmup_steps=3")
        plain = self.train("plain", *settings, ranks=2)
        for index, setting in enumerate((
                "train.eval_every=1", "checkpoint.every_steps=1", "comm.digest_every=1", "data.prefetch=0",
                "comm={wire_dtype:FP16 first_bucket_mb:0.001 bucket_mb:0.02}", "comm.shared_memory=false")):
            self.assertEqual(self.train(str(index), *settings, setting, ranks=2).digest, plain.digest, setting)


if __name__ == "__main__":
    unittest.main()
