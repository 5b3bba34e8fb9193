# SPDX-License-Identifier: Apache-2.0
"""Groups of frozen parameters, whose batch norms may keep their running statistics."""
import unittest

from runs import FP32, RANK_COUNTS, RunTest

FROZEN = "optimizer.group=[{ match: '^block0' frozen: true freeze_statistics: %s }]"


class Frozen(RunTest):
    def statistics(self, run, step, block):
        return run.tensors(step)[f"statistics/block{block}_norm.running"].tolist()

    def test_statistics_stay_on_one_rank_and_two(self):
        runs = []
        for ranks in RANK_COUNTS:
            run = self.train(f"kept{ranks}", FROZEN % "true", "train.steps=4", "checkpoint.every_steps=2", *FP32,
                             ranks=ranks)
            with self.subTest(ranks=ranks):
                channels = len(self.statistics(run, 4, 0)) // 2
                self.assertEqual(self.statistics(run, 4, 0), [0] * channels + [1] * channels)
                self.assertNotEqual(self.statistics(run, 4, 1), self.statistics(run, 2, 1))
            runs.append(run)
        self.assert_same_to_rounding(runs[-1], runs[0], 1e-4)

    def test_statistics_of_frozen_weights_move_unless_the_group_says_so(self):
        moved = self.train("moved", FROZEN % "false", "train.steps=4", "checkpoint.every_steps=2", *FP32)
        self.assertNotEqual(self.statistics(moved, 4, 0), self.statistics(moved, 2, 0))
        self.assertEqual(moved.tensors(4)["model/block0_conv.weight"], moved.tensors(2)["model/block0_conv.weight"])


if __name__ == "__main__":
    unittest.main()
