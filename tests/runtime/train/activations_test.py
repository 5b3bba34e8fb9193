# SPDX-License-Identifier: Apache-2.0
"""Models that compute their activations again train to the bits of those that keep them, in less memory."""
import json
import subprocess
import unittest

from runs import FP32, LOCKSTEP, RANK_COUNTS, RunTest

RESNET = """
seed: 5
model { resnet { depth: 50 stem: CIFAR width: 8 } }
data { global_batch: 12 train { synthetic { samples: 36 shape: [16, 16, 3] classes: 4 } } }
optimizer { sgd { lr: 0.05 momentum: 0.9 } }
train { steps: 4 }
"""
UNET = """
seed: 5
model { unet3d { levels: 2 channels: 4 norm: %s } }
data { global_batch: 4 train { spheres { samples: 12 shape: [16, 16, 16, 1] max_radius: 6 } } }
optimizer { sgd { lr: 0.02 momentum: 0.9 } }
train { steps: 4 }
"""
LEVELS = (FP32, ("amp={opt_level:O1 dtype:FP16}",), ("amp={opt_level:O2 dtype:BF16}",))


class Activations(RunTest):
    def write(self, text):
        path = self.folder / "job.pbtxt"
        path.write_text(text, encoding="utf-8")
        return path

    def expect_same_bits(self, job, field, levels=LEVELS, rank_counts=RANK_COUNTS, settings=()):
        for number, level in enumerate(levels):
            for ranks in rank_counts:
                with self.subTest(level=level, ranks=ranks):
                    name = f"{number}-{ranks}"
                    kept = self.train(f"kept-{name}", *level, *settings, job=job, ranks=ranks)
                    again = self.train(f"again-{name}", *level, *settings, f"{field}=true", job=job, ranks=ranks)
                    self.assertEqual(again.column("loss"), kept.column("loss"))
                    self.assertEqual(again.digest, kept.digest)
                    # Running statistics too.
                    self.assertEqual(again.tensors(), kept.tensors())

    def test_a_resnet_trains_to_the_same_bits(self):
        self.expect_same_bits(self.write(RESNET), "model.resnet.checkpoint_activations")

    def test_a_resnet_of_micro_batches_and_small_buckets_trains_to_the_same_bits(self):
        self.expect_same_bits(self.write(RESNET), "model.resnet.checkpoint_activations", levels=LEVELS[1:2],
                              settings=("train.accumulate=2", "comm.bucket_mb=0.05", "comm.first_bucket_mb=0.01",
                                        "data.global_batch=7"))

    def test_a_unet3d_of_every_norm_trains_to_the_same_bits(self):
        for norm in ("BATCH", "INSTANCE", "GROUP"):
            job = self.write(UNET % norm)
            settings = ("model.unet3d.groups=2",) if norm == "GROUP" else ()
            self.expect_same_bits(job, "model.unet3d.checkpoint_activations", levels=LEVELS[:2], settings=settings)
            for path in self.folder.iterdir():
                if path.is_dir():
                    path.rename(path.with_name(f"{norm}-{path.name}"))

    def test_a_step_takes_less_memory(self):
        for text, field, most in ((RESNET, "model.resnet.checkpoint_activations", 0.75),
                                  (UNET % "BATCH", "model.unet3d.checkpoint_activations", 0.9)):
            peak = {}
            for again in ("false", "true"):
                command = [LOCKSTEP, "validate", str(self.write(text)), "--dry-run", "--device", "cpu", "--json",
                           "--set", f"{field}={again}"]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                peak[again] = json.loads(done.stdout)["measured"]["activations"]
            self.assertLess(peak["true"], most * peak["false"], (field, peak))


if __name__ == "__main__":
    unittest.main()
