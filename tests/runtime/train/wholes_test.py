# SPDX-License-Identifier: Apache-2.0
"""A run alone predicts whole volumes and whole images of any extents, and answers each with a file."""
import array
import gzip
import json
import shutil
import struct
import subprocess
import unittest

from runs import HAS_MPI, LOCKSTEP, CarriedTest, npy, png, png_of_rows, read_npy, read_png

VOLUMES = """
name: "volumes" seed: 5
model { unet3d { levels: 2 channels: 4 } }
data {
  global_batch: 4
  train { volumes { images: "data/images" masks: "data/masks" target_kind: %s max_voxels: 4000 } }
  normalize { mean: 0.5 std: 2 }
  augment { patch: [8, 8, 8] }
}
amp { opt_level: O0 dtype: FP32 }
optimizer { adam { lr: 0.01 } }
train { steps: 15 %s }
"""
ARRAYS = """
name: "arrays" seed: 5
model { unet3d { levels: 2 channels: 4 } }
data { global_batch: 4 eval_batch: 1
       train { arrays { features: "data/x.npy" targets: "data/y.npy" target_kind: NUMBERS } } }
optimizer { adam { lr: 0.01 } }
train { steps: 5 loss: BCE_DICE }
"""
IMAGES = """
name: "images" seed: 7
model { unet2d { levels: 2 channels: 8 } }
data {
  global_batch: 4
  train { image_masks { images: "data/images" masks: "data/masks" size: 16 target_kind: %s } }
  normalize { mean: 0.25 std: 0.5 }
}
amp { opt_level: O0 dtype: FP32 }
optimizer { sgd { lr: 0.1 momentum: 0.9 } }
train { steps: 10 %s }
"""
ROWS = """
name: "rows"
model { mlp {} }
data { global_batch: 4 train { synthetic { samples: 8 shape: 3 classes: 2 } } }
optimizer { sgd { lr: 0.1 } }
train { steps: 1 }
"""
MASKS = ("NUMBERS", "loss: BCE_DICE")
CLASSES = ("CLASSES", "")


def size_of(extents):
    return extents[0] * extents[1] * extents[2]


def labels_in(extents, number):
    return bytes((i * 7 + number * 3) // 5 % 4 % 3 for i in range(size_of(extents)))


def values_in(extents, number):
    """Bright voxels are of class 1, very bright ones of class 2."""
    return array.array("f", (label + (i * 37 % 11) / 40 for i, label in enumerate(labels_in(extents, number))))


def volume(extents, number, channels=1):
    values = array.array("f", (value for value in values_in(extents, number) for _ in range(channels)))
    return npy("<f4", extents + (() if channels == 1 else (channels,)), values.tobytes())


def nifti(extents, number):
    """A NIfTI-1 file of float32 that lies somewhere, askew."""
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, 3, extents[2], extents[1], extents[0], 1, 1, 1, 1)
    struct.pack_into("<2h", header, 70, 16, 32)
    struct.pack_into("<8f", header, 76, -1, 0.5, 0.75, 2.5, 0, 0, 0, 0)
    struct.pack_into("<3f", header, 108, 352, 1, 0)
    header[123] = 2
    struct.pack_into("<2h6f", header, 252, 1, 2, 0.1, 0.2, 0.3, -10, 20, 30.5)
    struct.pack_into("<12f", header, 280, 0.5, 0.1, 0, -10, 0, 0.75, 0.2, 20, 0.3, 0, 2.5, 30.5)
    header[344:348] = b"n+1\0"
    return bytes(header) + values_in(extents, number).tobytes()


def read_nifti(path):
    """Extents z, y, x; what says where the volume lies; the type's code; and the numbers."""
    content = path.read_bytes()
    content = gzip.decompress(content) if path.name.endswith(".gz") else content
    dimensions = struct.unpack_from("<8h", content, 40)
    code = struct.unpack_from("<h", content, 70)[0]
    numbers = array.array({2: "B", 16: "f"}[code], content[352:])
    return dimensions[3:0:-1], (content[76:92], content[123], content[252:328]), code, numbers


class Wholes(CarriedTest):
    def volumes_run(self, kind):
        for part in ("images", "masks"):
            (self.home / "data" / part).mkdir()
        for number, extents in enumerate(((8, 12, 9), (16, 8, 8), (8, 9, 20))):
            (self.home / f"data/images/{number}.npy").write_bytes(volume(extents, number))
            most = 1 if kind == MASKS else 2
            (self.home / f"data/masks/{number}.npy").write_bytes(
                npy("|u1", extents, bytes(min(label, most) for label in labels_in(extents, number))))
        return self.trained(VOLUMES % kind)

    def put(self, name, content):
        path = self.away / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def scans(self):
        self.put("scans/a.nii.gz", gzip.compress(nifti((9, 12, 11), 3)))
        self.put("scans/b.npy", volume((5, 9, 20), 4))
        self.put("scans/c.nii", nifti((8, 8, 8), 5))

    def files(self, folder):
        root = self.away / folder
        return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}

    def test_volumes_of_any_extents_are_answered_with_labels_where_they_lie(self):
        run = self.volumes_run(CLASSES)
        self.scans()
        shown = self.call("infer", run, "--input", "scans", "--out", "labels/")
        self.assertIn("samples     3\n", shown)
        self.assertEqual(list(self.files("labels")), ["a.nii.gz", "b.npy", "c.nii"])
        for name in ("a.nii.gz", "c.nii"):
            extents, place, code, labels = read_nifti(self.away / "labels" / name)
            asked = read_nifti(self.away / "scans" / name)
            self.assertEqual((extents, place, code), (asked[0], asked[1], 2), name)
            self.assertLessEqual(set(labels), {0, 1, 2})
            self.assertGreater(len(set(labels)), 1)
        self.assertEqual(read_npy(self.away / "labels/b.npy")[:2], ("|u1", (5, 9, 20)))
        # An evaluation by windows gives the same answers: it finds no other label.
        for options in ((), ("--overlap", "0.5", "--window-weights", "gaussian")):
            self.call("infer", run, "--input", "scans", "--out", "labels/", *options)
            data = "data.eval={ volumes { images: '%s' masks: '%s' target_kind: CLASSES } }" % (
                self.away / "scans", self.away / "labels")
            result = json.loads(self.call("eval", run, "--set", data, "--whole-volumes", "--json", *options))
            self.assertEqual((result["samples"], result["accuracy"]), (3, 1.0))

    def test_names_below_a_folder_are_kept(self):
        run = self.volumes_run(CLASSES)
        self.put("scans/one/x.npy", volume((9, 9, 9), 1))
        self.put("scans/two/x.npy", volume((9, 9, 10), 2))
        self.put("y.npy", volume((7, 8, 8), 3))
        self.call("infer", run, "--input", "scans/", "y.npy", "--out", "labels/")
        self.assertEqual(list(self.files("labels")), ["one/x.npy", "two/x.npy", "y.npy"])
        self.assertIn("would both be labels/x.npy",
                      self.call("infer", run, "--input", "scans/one", "scans/two", "--out", "labels/", code=2))
        self.assertIn("would overwrite the input",
                      self.call("infer", run, "--input", "scans", "--out", "scans", code=2))

    def test_ranks_write_the_same_bytes(self):
        run = self.volumes_run(CLASSES)
        self.scans()
        self.put("scans/d.npy", b"no array")
        self.call("infer", run, "--input", "scans", "--out", "1/")
        self.assertEqual(len(self.files("1")), 3)
        for ranks in (2, 3) if HAS_MPI else ():
            shown = self.call("infer", run, "--input", "scans", "--out", f"{ranks}/", "--nproc", ranks)
            self.assertIn("unread      1 of them", shown)
            self.assertEqual(self.files(str(ranks)), self.files("1"))

    def test_masks_of_numbers_are_answered_with_probabilities(self):
        run = self.volumes_run(MASKS)
        self.scans()
        self.call("infer", run, "--input", "scans", "--out", "masks/")
        descr, shape, numbers = read_npy(self.away / "masks/b.npy")
        self.assertEqual((descr, shape), ("<f4", (5, 9, 20)))
        extents, place, code, more = read_nifti(self.away / "masks/a.nii.gz")
        self.assertEqual((extents, place, code), (*read_nifti(self.away / "scans/a.nii.gz")[:2], 16))
        for values in (numbers, more):
            self.assertTrue(all(0 <= value <= 1 for value in values))
            self.assertGreater(len(set(values)), 50)

    def test_arrays_of_volumes_are_predicted_as_their_data_set_is(self):
        extents = (8, 8, 8)
        samples = b"".join(values_in(extents, number).tobytes() for number in range(4))
        targets = b"".join(bytes(min(label, 1) for label in labels_in(extents, number)) for number in range(4))
        (self.home / "data/x.npy").write_bytes(npy("<f4", (4, *extents, 1), samples))
        (self.home / "data/y.npy").write_bytes(npy("|u1", (4, *extents), targets))
        shutil.copytree(self.home / "data", self.away / "data")
        run = self.trained(ARRAYS)
        data = "data.eval={ arrays { features: '%s' targets: '%s' target_kind: NUMBERS } }" % (
            self.away / "data/x.npy", self.away / "data/y.npy")
        self.call("infer", run, "--set", data, "--out", "all.npy")
        expected = read_npy(self.away / "all.npy")[2]
        for number in range(4):
            self.put(f"one/{number}.npy", volume(extents, number))
        self.call("infer", run, "--input", "one", "--out", "answers/")
        for number in range(4):
            answer = read_npy(self.away / f"answers/{number}.npy")[2]
            self.assert_close(answer, expected[512 * number:512 * (number + 1)], 1e-6)

    def test_volumes_that_cannot_be_used_are_named_and_the_others_predicted(self):
        run = self.volumes_run(CLASSES)
        self.scans()
        self.call("infer", run, "--input", "scans", "--out", "sound/")
        self.put("scans/cut.nii.gz", gzip.compress(nifti((9, 12, 11), 3))[:-100])
        self.put("scans/deep.npy", volume((8, 8, 8), 1, channels=2))
        self.put("scans/large.npy", volume((20, 20, 20), 1))
        done = subprocess.run([LOCKSTEP, "infer", str(run), "--input", "scans", "--out", "labels/"], capture_output=True,
                              text=True, check=False, cwd=self.away)
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in ("scans/cut.nii.gz", "scans/deep.npy has shape [8, 8, 8, 2]", "scans/large.npy: has 8000 voxels",
                     "3 of 6 inputs could not be read"):
            self.assertIn(text, done.stderr)
        self.assertEqual(self.files("labels"), self.files("sound"))
        self.call("infer", run, "--input", "scans", "--out", "labels/", "--strict", code=4)

    def test_wrong_use_is_refused(self):
        run = self.volumes_run(CLASSES)
        self.scans()
        for options, message in (((), "--out is missing"), (("--out", "p.csv"), "needs a folder"),
                                 (("--out", "l/", "--top-k", "2"), "--top-k"), (("--out", "l/", "--half"), "--half"),
                                 (("--out", "l/", "--overlap", "1"), "--overlap")):
            self.assertIn(message, self.call("infer", run, "--input", "scans", *options, code=2))
        self.assertIn("no line for it", self.call("infer", run, "--input", "-", code=2))
        self.put("photo.png", png(4, 4, lambda x, y: (x, y, 0)))
        self.assertIn(".nii.gz", self.call("infer", run, "--input", "photo.png", "--out", "l/", code=2))
        if HAS_MPI:
            said = self.call("infer", run, "--input", "scans", "--nproc", "2", code=2)
            self.assertEqual(said.count("--out is missing"), 1)

    def test_runs_that_answer_with_rows_take_no_folder(self):
        run = self.trained(ROWS)
        self.put("x.npy", npy("<f4", (3,), array.array("f", (1, 2, 3)).tobytes()))
        self.assertIn("must end in .csv", self.call("infer", run, "--input", "x.npy", "--out", "rows/", code=2))
        self.assertIn("--overlap", self.call("infer", run, "--input", "x.npy", "--overlap", "0.5", code=2))

    def images_run(self, kind, steps):
        for part in ("images", "masks"):
            (self.home / "data" / part).mkdir()
        for number in range(8):
            self.picture(self.home / f"data/images/{number}.png", 16, number)
            value = 255 if kind == MASKS else 1 + number % 2
            mask = [[value if self.inside(x, y, number) else 0 for x in range(16)] for y in range(16)]
            (self.home / f"data/masks/{number}.png").write_bytes(png_of_rows(mask, 1))
        return self.trained(IMAGES % kind, f"train.steps={steps}")

    @staticmethod
    def inside(x, y, number):
        return number % 5 <= x % 16 < number % 5 + 9 and 3 <= y < 12

    def picture(self, path, width, number, height=16):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(width, height, lambda x, y: (220 if self.inside(x, y, number) else 20, 200 * (number % 2),
                                                          (37 * x + 11 * y) % 256)))

    def test_images_are_answered_with_masks_of_their_own_extents(self):
        run = self.images_run(CLASSES, 60)
        for number, (width, height) in enumerate(((16, 16), (24, 24), (40, 20), (19, 33))):
            self.picture(self.away / f"photos/{number}.png", width, number, height)
        self.put("photos/sub/damaged.jpg", b"\xff\xd8\xff")
        for ranks in (1, 2, 3) if HAS_MPI else (1,):
            some = ("--nproc", ranks) if ranks > 1 else ()
            self.call("infer", run, "--input", "photos", "--out", f"{ranks}/", *some)
            self.assertEqual(self.files(str(ranks)), self.files("1"))
        self.assertEqual(list(self.files("1")), [f"{number}.png" for number in range(4)])
        for number, extents in enumerate(((16, 16), (24, 24), (40, 20), (19, 33))):
            width, rows = read_png(self.away / f"1/{number}.png")
            self.assertEqual((width, len(rows)), extents)
            self.assertLessEqual({value for row in rows for value in row}, {0, 1, 2})
        # An evaluation of square ones finds no other class.
        for number in (2, 3):
            (self.away / f"photos/{number}.png").unlink()
            (self.away / f"1/{number}.png").unlink()
        (self.away / "photos/sub/damaged.jpg").unlink()
        data = "data.eval={ image_masks { images: '%s' masks: '%s' size: 16 } }" % (self.away / "photos", self.away / "1")
        result = json.loads(self.call("eval", run, "--set", data, "--json"))
        self.assertEqual((result["samples"], result["accuracy"]), (2, 1.0))
        self.picture(self.away / "more/1.png", 16, 1)
        self.picture(self.away / "more/1.jpg", 16, 1)
        self.assertIn("would both be", self.call("infer", run, "--input", "more", "--out", "2/", code=2))

    def test_an_image_is_predicted_beyond_its_middle(self):
        run = self.images_run(CLASSES, 60)
        self.picture(self.away / "wide.png", 32, 0)
        for side in (0, 1):
            pixels = read_png(self.away / "wide.png")[1]
            self.put(f"half{side}.png", png(16, 16, lambda x, y, at=16 * side, rows=pixels: rows[y][3 * (at + x):3 * (at + x) + 3]))
        self.call("infer", run, "--input", "wide.png", "half0.png", "half1.png", "--out", "answers/", "--overlap", "0")
        wide, left, right = (read_png(self.away / f"answers/{name}.png")[1] for name in ("wide", "half0", "half1"))
        self.assertEqual([bytes(row) for row in wide], [bytes(a + b) for a, b in zip(left, right, strict=True)])
        self.assertGreater(len({value for row in right for value in row}), 1)

    def test_a_mask_of_one_thing_is_grey(self):
        run = self.images_run(MASKS, 10)
        self.picture(self.away / "photos/0.png", 16, 0)
        self.put("masks/0.png", png_of_rows([[0] * 16] * 16, 1))
        self.call("infer", run, "--input", "photos", "--out", "answers/")
        data = "data.eval={ image_masks { images: '%s' masks: '%s' size: 16 target_kind: NUMBERS } }" % (
            self.away / "photos", self.away / "masks")
        self.call("infer", run, "--set", data, "--out", "p.npy")
        probabilities = read_npy(self.away / "p.npy")[2]
        pixels = [value for row in read_png(self.away / "answers/0.png")[1] for value in row]
        for pixel, probability in zip(pixels, probabilities, strict=True):
            self.assertAlmostEqual(pixel, 255 * probability, delta=0.51)
        self.assertGreater(len(set(pixels)), 20)


if __name__ == "__main__":
    unittest.main()
