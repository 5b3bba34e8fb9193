# SPDX-License-Identifier: Apache-2.0
"""Samples that stay on the device: every step takes those of the first one, and the run goes on as others do."""
import unittest

from runs import FP32, RANK_COUNTS, SAVE_ALWAYS, RunTest

JOB = """
seed: 5
model { mlp { hidden: 16 batch_norm: true } }
data {
  global_batch: 10
  train { synthetic { samples: 32 shape: 8 classes: 4 resident: true } }
  eval { synthetic { samples: 20 shape: 8 classes: 4 } }
}
optimizer { sgd { lr: 0.05 momentum: 0.9 } }
train { steps: 9 accumulate: 2 }
"""
# As in ranks_test.py.
ROUNDING = 5e-5
LOADED = ("data.train.synthetic.resident=false",)
# A data set of one batch, in its order: what residence makes of a larger one.
ONE_BATCH = ("data.train.synthetic.samples=10", "data.shuffle=false")


class Resident(RunTest):
    def setUp(self):
        super().setUp()
        self.job = self.folder / "job.pbtxt"
        self.job.write_text(JOB, encoding="utf-8")

    def test_every_step_takes_the_samples_of_the_first(self):
        same = self.train("same", *ONE_BATCH, *LOADED, job=self.job)
        run = self.train("run", "data.shuffle=false", job=self.job)
        self.assertEqual(run.column("loss"), same.column("loss"))
        self.assertEqual(run.digest, same.digest)

    def test_the_place_in_the_data_goes_on_as_if_it_were_loaded(self):
        loaded = self.train("loaded", *LOADED, job=self.job)
        run = self.train("run", job=self.job)
        self.assertEqual(run.column("epoch"), loaded.column("epoch"))
        self.assertEqual(run.step(1)["loss"], loaded.step(1)["loss"])
        self.assertNotEqual(run.step(2)["loss"], loaded.step(2)["loss"])

    def test_ranks_train_alike_and_resume_to_the_same_bits(self):
        reference = self.train("reference", *FP32, *SAVE_ALWAYS, job=self.job)
        for ranks in RANK_COUNTS:
            whole = self.train(f"whole{ranks}", *FP32, *SAVE_ALWAYS, job=self.job, ranks=ranks)
            self.assert_same_to_rounding(whole, reference, ROUNDING)
            rest = self.train(f"rest{ranks}", *FP32, *SAVE_ALWAYS, job=self.job, ranks=ranks,
                              resume=whole.checkpoint(5))
            self.assertEqual(rest.digest, whole.digest)
            self.assertEqual(rest.column("epoch"), whole.column("epoch")[5:])


if __name__ == "__main__":
    unittest.main()
