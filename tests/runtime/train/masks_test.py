# SPDX-License-Identifier: Apache-2.0
"""A U-Net finds the things of images by their masks: alike on any number of ranks, with metrics a class and pictures."""
import json
import random
import subprocess
import unittest

from runs import FP32, HAS_MPI, LOCKSTEP, RunTest, png_of_rows, read_png

JOB = """
name: "masks" seed: 7
model { unet2d { levels: 2 channels: 8 } }
data {
  global_batch: 5
  train { image_masks { images: "images" masks: "masks" size: 16 resize: 20 } }
  eval { image_masks { images: "images" masks: "masks" size: 16 resize: 20 } }
  augment { flip: true }
  normalize { mean: 0.25 std: 0.5 }
}
optimizer { sgd { lr: 0.1 momentum: 0.9 } }
train { steps: 6 }
"""
SIDE = 24
IGNORED = 255
COLORS = {0: (0, 0, 0), 1: (128, 0, 0), 2: (0, 128, 0)}  # PASCAL VOC's
ROUNDING = 5e-5


class Masks(RunTest):
    def setUp(self):
        super().setUp()
        self.job = self.folder / "job.pbtxt"
        self.job.write_text(JOB, encoding="utf-8")
        random.seed(3)
        self.masks = {}
        for name in ("images", "masks"):
            (self.folder / name).mkdir()
        for number in range(12):
            # A red or a green rectangle on blue noise, and around it pixels that do not count.
            left, top, kind = random.randrange(2, 10), random.randrange(2, 10), 1 + number % 2
            image, mask = [], []
            for y in range(SIDE):
                classes = bytes(kind if left <= x < left + 9 and top <= y < top + 9 else
                                IGNORED if x == left - 1 and number == 0 else 0 for x in range(SIDE))
                image.append(bytes(value for each in classes for value in (
                    220 if each == 1 else 20, 220 if each == 2 else 20, random.randrange(256))))
                mask.append(classes)
            (self.folder / f"images/{number}.png").write_bytes(png_of_rows(image, 3))
            self.masks[self.folder / f"masks/{number}.png"] = mask
            (self.folder / f"masks/{number}.png").write_bytes(png_of_rows(mask, 1))

    def evaluated(self, run, *arguments, ranks=1):
        command = [LOCKSTEP, "eval", str(self.job), "--device", "cpu", "--checkpoint", str(run.directory), "--json", *arguments]
        done = subprocess.run([*command, *(["--nproc", str(ranks)] if ranks > 1 else [])], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_one_two_and_three_ranks_train_and_evaluate_alike(self):
        reference = self.train("1", *FP32, job=self.job)
        for ranks in (2, 3) if HAS_MPI else ():
            run = self.train(str(ranks), *FP32, job=self.job, ranks=ranks)
            self.assert_same_to_rounding(run, reference, ROUNDING)
        # The same weights: counts of whole numbers are equal, whatever the shares.
        found = [self.evaluated(reference, ranks=ranks) for ranks in ((1, 2, 3) if HAS_MPI else (1, 1))]
        for other in found[1:]:
            for name in ("accuracy", "mean_dice", "mean_iou", "class_dice", "class_iou"):
                self.assertEqual(other[name], found[0][name], name)
            self.assertAlmostEqual(other["loss"], found[0]["loss"], 5)

    def test_it_learns_and_says_so_a_class(self):
        run = self.train("run", "train.steps=150", "train.eval_every=50", "checkpoint.best=eval.mean_iou",
                         "checkpoint.every_steps=50", job=self.job)
        found = run.summary["eval"]
        self.assertGreater(found["mean_iou"], 0.85)
        self.assertEqual(len(found["class_iou"]), 3)
        self.assertAlmostEqual(found["mean_iou"], sum(found["class_iou"]) / 3, 12)
        self.assertAlmostEqual(found["mean_dice"], sum(found["class_dice"]) / 3, 12)
        for dice, iou in zip(found["class_dice"], found["class_iou"], strict=True):
            self.assertAlmostEqual(dice, 2 * iou / (1 + iou), 12)
        last = [line for line in run.lines if line.get("event") == "eval"][-1]
        self.assertEqual(last["class_iou"], found["class_iou"])
        plain = subprocess.run([LOCKSTEP, "eval", str(self.job), "--checkpoint", str(run.directory), "--device", "cpu"],
                               capture_output=True, text=True, check=True).stdout
        self.assertIn("class 2     dice", plain)

    def test_pictures_show_input_target_and_answer(self):
        run = self.train("run", "train.steps=60", job=self.job)
        pictures = {}
        for ranks in (1, 2) if HAS_MPI else (1,):
            folder = self.folder / f"pictures{ranks}"
            self.evaluated(run, "--pictures", str(folder), "--picture-count", "4", ranks=ranks)
            pictures[ranks] = {path.name: path.read_bytes() for path in folder.iterdir()}
            self.assertEqual(sorted(pictures[ranks]), [f"sample_{i:06}.png" for i in range(4)])
        # Of several ranks, input and target: answers are equal to rounding.
        for name in pictures[1] if HAS_MPI else ():
            for one, two in zip(read_png(self.folder / "pictures1" / name)[1], read_png(self.folder / "pictures2" / name)[1],
                                strict=True):
                self.assertEqual(one[:96], two[:96], name)
        # Sorted by name, 10.png is the third.
        width, rows = read_png(self.folder / "pictures1/sample_000002.png")
        self.assertEqual((width, len(rows)), (48, 16))
        at = {(panel, x, y): tuple(rows[y][3 * (16 * panel + x):3 * (16 * panel + x) + 3])
              for panel in range(3) for x in range(16) for y in range(16)}
        right = 0
        for x in range(16):
            for y in range(16):
                self.assertIn(at[1, x, y], (COLORS[0], COLORS[1]))
                right += at[1, x, y] == at[2, x, y]
                if at[1, x, y] == COLORS[1] == at[1, (x + 2) % 16, y] == at[1, x - 2, y] == at[1, x, y - 2] == at[1, x, (y + 2) % 16]:
                    self.assertEqual(at[0, x, y][:2], (220, 20))  # the input as it was before the normalisation
        self.assertGreater(right, 230)

    def test_a_mask_of_one_thing_has_a_probability_a_pixel(self):
        for path, mask in self.masks.items():
            path.write_bytes(png_of_rows([bytes(255 if each in (1, 2) else 0 for each in row) for row in mask], 1))
        settings = [f"data.{part}.image_masks.target_kind=NUMBERS" for part in ("train", "eval")]
        run = self.train("run", *settings, "train.loss=BCE_DICE", "train.steps=60", job=self.job)
        found = run.summary["eval"]
        self.assertEqual(len(found["class_iou"]), 1)
        self.assertGreater(found["dice"], 0.8)

    def test_samples_without_a_target_a_pixel_have_no_pictures(self):
        job = self.folder / "other.pbtxt"
        job.write_text('name: "rows" model { mlp {} } data { global_batch: 4 train { synthetic { samples: 8 shape: 3 classes: 2 } } '
                       "eval { synthetic { samples: 8 shape: 3 classes: 2 } } } optimizer { sgd { lr: 0.1 } } train { steps: 1 }",
                       encoding="utf-8")
        run = self.train("rows", job=job)
        done = subprocess.run([LOCKSTEP, "eval", str(job), "--device", "cpu", "--checkpoint", str(run.directory), "--pictures",
                               str(self.folder / "none")], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--pictures needs images [H, W, C] with a class each or a target a pixel", done.stderr)


if __name__ == "__main__":
    unittest.main()
