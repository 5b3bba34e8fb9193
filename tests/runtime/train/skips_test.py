# SPDX-License-Identifier: Apache-2.0
"""A step is applied or skipped by all ranks alike, and a skip changes nothing but the scale."""
import unittest

from runs import FP32, SAVE_ALWAYS, RunTest, faults


class Skips(RunTest):
    def assert_step_changed_nothing(self, run, step):
        self.assertEqual(run.tensors(step), run.tensors(step - 1), f"weights, momentum or statistics at step {step}")

    def test_an_overflow_on_one_rank_skips_exactly_that_step_everywhere(self):
        # digest_every compares the weights of all ranks after each step.
        run = self.train("run", "train.steps=6", "comm.digest_every=1", *SAVE_ALWAYS,
                         faults("overflow", "step:3 rank:1 parameter:'block1_conv.weight'"), ranks=2)
        self.assertEqual(run.column("skipped"), [False, False, True, False, False, False])
        self.assertEqual((run.step(3)["parameter"], run.step(3)["rank"]), ("block1_conv.weight", 1))
        self.assertEqual(run.column("loss_scale"), [65536.0] * 3 + [32768.0] * 3)
        self.assertEqual(run.step(4)["lr"], run.step(3)["lr"], "the schedule follows applied steps")
        self.assertEqual((run.summary["applied_steps"], run.summary["skipped_steps"]), (5, 1))
        self.assert_step_changed_nothing(run, 3)
        self.assertNotEqual(run.tensors(4), run.tensors(3))

    def test_a_skip_in_every_position_of_an_accumulation_cycle(self):
        # Step 2 in micro-batch 0, step 4 in 1, step 6 in 2: on one rank, then the other.
        points = [item for micro, step in enumerate((2, 4, 6))
                  for item in ("overflow", f"step:{step} rank:{micro % 2} micro_batch:{micro}")]
        run = self.train("run", "train.accumulate=3", "train.steps=7", "comm.digest_every=1", *SAVE_ALWAYS,
                         faults(*points), ranks=2)
        self.assertEqual(run.column("skipped"), [False, True] * 3 + [False])
        self.assertEqual([run.step(step)["rank"] for step in (2, 4, 6)], [0, 1, 0])
        for step in (2, 4, 6):
            self.assert_step_changed_nothing(run, step)

    def test_a_nan_in_any_parameter_is_named(self):
        names = [name.removeprefix("model/") for name in self.train("model", "train.steps=1").tensors()
                 if name.startswith("model/")]
        points = [item for step, name in enumerate(names, start=2)
                  for item in ("nan", f"step:{step} rank:{step % 2} parameter:'{name}'")]
        run = self.train("run", f"train.steps={len(names) + 2}", *SAVE_ALWAYS, faults(*points), ranks=2)
        self.assertEqual([step.get("parameter") for step in run.steps], [None, *names, None])
        for step in range(2, len(names) + 2):
            self.assertEqual(run.step(step)["rank"], step % 2)
            self.assert_step_changed_nothing(run, step)

    def test_a_plain_fp32_run_skips_too(self):
        run = self.train("run", *FP32, "train.steps=4", *SAVE_ALWAYS, faults("nan", "step:2 rank:0"))
        self.assertEqual(run.column("skipped"), [False, True, False, False])
        self.assert_step_changed_nothing(run, 2)


class LossScale(RunTest):
    def scales(self, *settings, steps=12, code=0):
        return self.train("run", f"train.steps={steps}", *settings, code=code).column("loss_scale")

    def test_the_scale_grows_after_the_interval_up_to_the_ceiling(self):
        self.assertEqual(self.scales("amp.loss_scale={init:256 growth_interval:3 max:1000}"),
                         [256] * 3 + [512] * 3 + [1000] * 6)

    def test_a_skip_starts_the_growth_interval_anew(self):
        self.assertEqual(self.scales("amp.loss_scale={init:256 growth_interval:3}", faults("overflow", "step:3")),
                         [256] * 3 + [128] * 3 + [256] * 3 + [512] * 3)

    def test_the_scale_stops_at_the_floor(self):
        storm = faults(*(item for step in range(2, 8) for item in ("overflow", f"step:{step}")))
        self.assertEqual(self.scales("amp.loss_scale={init:64 min:10}", storm, steps=9),
                         [64, 64, 32, 16] + [10] * 5)

    def test_a_static_scale_stays(self):
        self.assertEqual(self.scales("amp.loss_scale={init:128 dynamic:false}", faults("overflow", "step:2"), steps=4),
                         [128] * 4)

    def test_a_storm_of_nans_ends_the_run_and_names_parameter_and_rank(self):
        storm = faults(*(item for step in range(3, 9)
                         for item in ("nan", f"step:{step} rank:1 parameter:'block0_norm.bias'")))
        run = self.train("run", "train.steps=9", "amp.loss_scale.max_consecutive_skips=4", storm, ranks=2, code=5)
        self.assertRegex(run.output, r"4 steps in a row were skipped.*block0_norm\.bias.*rank 1")
        self.assertEqual(run.column("skipped"), [False, False, True, True, True, True])

    def test_a_scale_that_is_far_too_high_is_found_out(self):
        # Gradients overflow by themselves, on both ranks, until the scale fits.
        run = self.train("run", "train.steps=40", "amp.loss_scale={init:4294967296 max:4294967296}", ranks=2)
        skips = run.column("skipped").count(True)
        self.assertTrue(5 <= skips <= 20, skips)
        self.assertEqual(run.column("loss_scale")[-1], 2.0**32 / 2**skips)
        self.assertLess(run.step(40)["loss"], 2)

    def test_a_run_that_diverges_ends(self):
        wild = ("optimizer.sgd.lr=1e30", "schedule.cosine.warmup_steps=0")
        fp16 = self.train("fp16", "train.steps=100", *wild, ranks=2, code=5)
        self.assertRegex(fp16.output, "20 steps in a row were skipped")
        self.assertRegex(self.train("fp32", *FP32, "train.steps=100", *wild, code=5).output, "the loss is -?(nan|inf)")

    def test_a_lone_good_step_ends_the_count_of_skips(self):
        storm = faults(*(item for step in (2, 3, 5, 6, 8) for item in ("nan", f"step:{step}")))
        self.assertEqual(len(self.scales("amp.loss_scale.max_consecutive_skips=3", storm, steps=9)), 9)

    def test_a_nan_loss_in_fp32_ends_the_run(self):
        run = self.train("run", *FP32, "train.steps=5", faults("nan", "step:3 rank:1 phase:LOSS"), ranks=2, code=5)
        self.assertRegex(run.output, r"the loss is -?nan at step 3.*on rank 1")
        self.assertIsNone(run.step(3)["loss"])


if __name__ == "__main__":
    unittest.main()
