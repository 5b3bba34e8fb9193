# SPDX-License-Identifier: Apache-2.0
"""The digits train in every precision, at every opt level, to much the same accuracy."""
import unittest

from runs import FP32, RunTest

# A third of the job's own length, which suffices for nearly all of its accuracy.
SETTINGS = ("train.steps=250", "train.eval_every=0", "schedule.cosine.warmup_steps=20", "checkpoint.every_steps=0")
BF16 = ("amp.dtype=BF16", "comm.wire_dtype=BF16")


class Precision(RunTest):
    def accuracy(self, name, *settings):
        return self.train(name, *SETTINGS, *settings, ranks=2).summary["eval"]["accuracy"]

    def test_fp32_bf16_and_fp16_reach_the_same_accuracy(self):
        accuracies = {"fp32": self.accuracy("fp32", *FP32), "bf16": self.accuracy("bf16", *BF16),
                      "fp16": self.accuracy("fp16")}
        self.assertGreaterEqual(min(accuracies.values()), 0.95, accuracies)
        self.assertLessEqual(max(accuracies.values()) - min(accuracies.values()), 0.015, accuracies)

    def test_every_opt_level_learns(self):
        for level in ("O2", "O3"):
            for dtype in ("FP16", "BF16"):
                settings = (f"amp.opt_level={level}", f"amp.dtype={dtype}", f"comm.wire_dtype={dtype}")
                self.assertGreaterEqual(self.accuracy(f"{level}-{dtype}", *settings), 0.9, settings)


if __name__ == "__main__":
    unittest.main()
