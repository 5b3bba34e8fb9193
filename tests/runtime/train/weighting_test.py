# SPDX-License-Identifier: Apache-2.0
"""Weights of classes and samples, and mixtures of samples: alike on any number of ranks, resumed to the same bits."""
import json
import struct
import subprocess
import unittest

from data_test import npy
from runs import FP32, LOCKSTEP, RANK_COUNTS, SAVE_ALWAYS, RunTest, require_mpi

SAMPLES = 50  # of which a step takes 8: an epoch ends within the seventh
JOB = """
seed: 5
model { mlp { hidden: 16 } }
data { global_batch: 8 train { %s } eval { %s } %s }
optimizer { sgd { lr: 0.05 momentum: 0.9 } }
train { steps: 10 %s }
"""
# As in ranks_test.py.
ROUNDING = 5e-5
FP16 = ("amp={opt_level:O1 dtype:FP16 loss_scale{init:1024}}",)


class Weighting(RunTest):
    def setUp(self):
        super().setUp()
        self.jobs = 0

    def job(self, weights=None, numbers=False, augment="", train=""):
        labels = [i * 7 % 3 for i in range(SAMPLES)]
        features = [(i * j) % 11 / 10 + label for i, label in enumerate(labels) for j in range(6)]
        (self.folder / "x.npy").write_bytes(npy("<f4", (SAMPLES, 6), struct.pack(f"<{len(features)}f", *features)))
        (self.folder / "y.npy").write_bytes(npy("|u1", (SAMPLES,), bytes(labels)))
        self.jobs += 1
        data = 'features: "x.npy" targets: "y.npy" ' + ("target_kind: NUMBERS " if numbers else "")
        if weights is not None:
            name = f"w{self.jobs}.npy"
            (self.folder / name).write_bytes(npy("<f8", (SAMPLES,), struct.pack(f"<{SAMPLES}d", *weights)))
            data += f'weights: "{name}" '
        arrays = f"arrays {{ {data} }}"
        path = self.folder / f"job{self.jobs}.pbtxt"
        path.write_text(JOB % (arrays, arrays, augment, train), encoding="utf-8")
        return path

    def weights(self):
        return [(i % 5) / 2 for i in range(SAMPLES)]

    def expect_alike(self, job, *settings):
        require_mpi()
        reference = self.train("1", *FP32, *settings, job=job)
        for ranks in (2, 3):
            run = self.train(str(ranks), *FP32, *settings, job=job, ranks=ranks)
            self.assert_same_to_rounding(run, reference, ROUNDING)
            self.assertAlmostEqual(run.summary["eval"]["loss"], reference.summary["eval"]["loss"], delta=1e-4)

    def expect_resumed(self, job):
        for ranks in RANK_COUNTS:
            whole = self.train(f"whole{ranks}", *SAVE_ALWAYS, job=job, ranks=ranks)
            rest = self.train(f"rest{ranks}", *SAVE_ALWAYS, job=job, ranks=ranks, resume=whole.checkpoint(6))
            self.assertEqual(rest.digest, whole.digest)

    def test_weights_of_samples_train_alike_on_any_number_of_ranks(self):
        self.expect_alike(self.job(self.weights()))

    def test_weights_of_samples_count_in_regression_and_micro_batches(self):
        self.expect_alike(self.job(self.weights(), numbers=True), "train.accumulate=3")

    def test_weights_of_classes_train_alike_on_any_number_of_ranks(self):
        self.expect_alike(self.job(self.weights(), train="class_weight: [0.5, 2, 1]"), "data.global_batch=7")

    def test_mixtures_train_alike_on_any_number_of_ranks(self):
        self.expect_alike(self.job(self.weights(), augment="augment { mixup: 0.4 }",
                                   train="class_weight: [0.5, 2, 1] label_smoothing: 0.1"), "train.accumulate=2")

    def test_a_resumed_run_draws_the_same_mixtures(self):
        self.expect_resumed(self.job(self.weights(), augment="augment { mixup: 0.4 }"))

    def test_equal_weights_are_factors_of_the_loss(self):
        plain = self.train("plain", *FP32, "train.steps=1", job=self.job())
        for name, job in (("samples", self.job([3.0] * SAMPLES)),
                          ("classes", self.job(train="class_weight: [3, 3, 3]"))):
            run = self.train(name, *FP32, "train.steps=1", job=job)
            self.assert_close(run.column("loss"), [3 * loss for loss in plain.column("loss")], 1e-5, name)

    def test_a_sample_of_weight_zero_is_as_if_it_were_not_there(self):
        weights = [0.0 if i % 2 else 1.0 for i in range(SAMPLES)]
        job = self.job(weights)
        run = self.train("run", *FP32, job=job)
        labels = [(i + (i % 2)) * 7 % 3 for i in range(SAMPLES)]  # wrong where nothing depends on them
        (self.folder / "y.npy").write_bytes(npy("|u1", (SAMPLES,), bytes(labels)))
        other = self.train("other", *FP32, job=job)
        self.assertEqual(other.digest, run.digest)
        self.assertEqual(other.summary["eval"]["loss"], run.summary["eval"]["loss"])
        self.assertNotEqual(other.summary["eval"]["accuracy"], run.summary["eval"]["accuracy"])

    def test_all_of_them_train_in_16_bits(self):
        job = self.job(self.weights(), augment="augment { mixup: 0.4 }", train="class_weight: [0.5, 2, 1]")
        exact = self.train("exact", *FP32, job=job)
        for dtype in ("FP16", "BF16"):
            run = self.train(dtype, f"amp={{opt_level:O1 dtype:{dtype}}}", job=job)
            self.assert_close(run.column("loss"), exact.column("loss"), 0.03, dtype)

    def test_a_table_names_a_column_of_weights(self):
        lines = [f"{i % 7},{(i % 5) / 2},{i * 7 % 3},{i * 7 % 3 + i % 5 / 10}" for i in range(SAMPLES)]
        (self.folder / "t.csv").write_text("u,w,kind,v\n" + "\n".join(lines) + "\n", encoding="utf-8")
        table = 'csv { files: "t.csv" target: "kind" weight: "w" }'
        path = self.folder / "table.pbtxt"
        path.write_text(JOB % (table, table, "", ""), encoding="utf-8")
        self.expect_alike(path)

    def test_wrong_weights_are_refused(self):
        for job, words in ((self.job(train="class_weight: [1, 2]"), "train.class_weight"),
                           (self.job(train="class_weight: [1, -2, 1]"), "train.class_weight[1]"),
                           (self.job(numbers=True, train="class_weight: [1]"), "needs loss CROSS_ENTROPY"),
                           (self.job(numbers=True, augment="augment { mixup: 1 }"), "data.augment.mixup"),
                           (self.job(augment="augment { mixup: -1 }"), "data.augment.mixup"),
                           (self.job([-1.0] + [1.0] * (SAMPLES - 1)), "weight -1 of sample 0")):
            done = subprocess.run([LOCKSTEP, "validate", str(job)], capture_output=True, text=True, check=False)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn(words, done.stdout + done.stderr)

    def test_mixtures_of_tokens_are_refused(self):
        path = self.folder / "tokens.pbtxt"
        path.write_text("""
model { gpt { layers: 1 heads: 1 width: 8 context: 4 } }
data { global_batch: 2 train { synthetic { samples: 8 shape: 4 vocabulary: 5 } } augment { mixup: 1 } }
optimizer { sgd { lr: 0.1 } }
train { steps: 1 }
""", encoding="utf-8")
        done = subprocess.run([LOCKSTEP, "validate", "--json", str(path)], capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("are tokens", json.dumps(json.loads(done.stdout)) + done.stderr)


if __name__ == "__main__":
    unittest.main()
