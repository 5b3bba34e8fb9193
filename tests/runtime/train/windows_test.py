# SPDX-License-Identifier: Apache-2.0
"""Whole volumes of any extents are evaluated by sliding windows: to the same bits on any number of ranks."""
import json
import struct
import subprocess
import unittest

from runs import HAS_MPI, LOCKSTEP, RunTest, npy

JOB = """
seed: 5
model { unet3d { levels: 2 channels: 4 } }
data {
  global_batch: 4
  train { volumes { images: "images" masks: "masks" target_kind: CLASSES } }
  eval { volumes { images: "val/images" masks: "val/masks" target_kind: CLASSES } }
  normalize { mean: 0.5 std: 2 }
  augment { patch: [8, 8, 8] }
}
optimizer { adam { lr: 0.01 } }
train { steps: 30 }
"""

EXTENTS = ((8, 12, 9), (16, 8, 8), (5, 9, 20), (11, 10, 6), (8, 8, 8))


class Windows(RunTest):
    def setUp(self):
        super().setUp()
        self.job = self.folder / "job.pbtxt"
        self.job.write_text(JOB, encoding="utf-8")
        for i, extents in enumerate(EXTENTS):
            self.write("val", i, extents)
            self.write("", i, tuple(max(8, extent) for extent in extents))
        self.run_of_it = self.train("run", "data.eval=unset", job=self.job)

    def write(self, split, number, extents):
        """Bright voxels are of class 1, very bright ones of class 2; the last volume has none of them."""
        count = extents[0] * extents[1] * extents[2]
        labels = [(i * 7 + number * 3) // 5 % 4 % 3 if number < 4 else 0 for i in range(count)]
        image = struct.pack(f"<{count}f", *(label + (i * 37 % 11) / 40 for i, label in enumerate(labels)))
        for part, content in (("images", npy("<f4", extents, image)), ("masks", npy("|u1", extents, bytes(labels)))):
            folder = self.folder / split / part
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number}.npy").write_bytes(content)

    def evaluate(self, *options, ranks=1, code=0):
        command = [LOCKSTEP, "eval", str(self.job), "--device", "cpu", "--checkpoint", str(self.run_of_it.directory), *options]
        done = subprocess.run(command + (["--nproc", str(ranks)] if ranks > 1 else []), capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def test_any_number_of_ranks_gives_the_same_bits(self):
        answers = {self.evaluate("--whole-volumes", "--json", ranks=ranks) for ranks in ((1, 2, 3, 7) if HAS_MPI else (1,))}
        self.assertEqual(1, len(answers), answers)
        result = json.loads(answers.pop())
        self.assertEqual(5, result["samples"])
        self.assertGreater(result["accuracy"], 0.5)
        self.assertEqual({"dice_1", "dice_2"}, {name for name in result if name.startswith("dice_")})
        for name in ("dice", "dice_1", "dice_2"):
            self.assertTrue(0 < result[name] <= 1, result)
        # A volume without a class but the background is all right where the answer has none.
        gaussian = json.loads(self.evaluate("--whole-volumes", "--window-weights", "gaussian", "--overlap", "0.5", "--json"))
        self.assertNotEqual(gaussian["loss"], result["loss"])
        self.assertAlmostEqual(gaussian["loss"], result["loss"], delta=0.3)

    def test_a_volume_of_the_patch_is_evaluated_as_without_windows(self):
        for part in ("images", "masks"):
            for i in range(len(EXTENTS) - 1):
                (self.folder / "val" / part / f"{i}.npy").unlink()
        self.write("val", 0, (8, 8, 8))
        plain, whole = (json.loads(self.evaluate("--json", *more)) for more in ((), ("--whole-volumes",)))
        for name in ("samples", "accuracy", "dice"):
            self.assertEqual(plain[name], whole[name], name)
        self.assertAlmostEqual(plain["loss"], whole["loss"], delta=1e-5)

    def test_volumes_that_are_held_out_are_taken_whole(self):
        changes = ("--set", "data.eval=unset", "--set", "data.eval_share=0.4")
        result = json.loads(self.evaluate("--whole-volumes", "--json", *changes))
        self.assertIn(result["samples"], range(1, 5))

    def test_wrong_use_is_refused(self):
        # Without a patch the volumes have one shape, as they must.
        for part in ("images", "masks"):
            for split in ("", "val"):
                for i in range(1, len(EXTENTS)):
                    (self.folder / split / part / f"{i}.npy").unlink()
        self.write("", 0, (8, 12, 12))
        self.write("val", 0, (8, 12, 12))
        self.assertIn("data.augment.patch", self.evaluate("--whole-volumes", "--set", "data.augment.patch=unset", code=2))
        self.evaluate("--overlap", "0.5", code=2)
        self.evaluate("--whole-volumes", "--overlap", "1", code=2)

    def test_the_graph_takes_a_patch(self):
        out = self.folder / "model.onnx"
        done = subprocess.run([LOCKSTEP, "export", str(self.job), "--checkpoint", str(self.run_of_it.directory), "--onnx",
                               str(out)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        # The extents of the input, behind "batch" and the channel: three dimensions of 8, and no other.
        content = out.read_bytes()
        self.assertIn(b"\x0a\x02\x08\x01" + b"\x0a\x02\x08\x08" * 3, content)
        self.assertNotIn(b"\x0a\x02\x08\x0c", content)


if __name__ == "__main__":
    unittest.main()
