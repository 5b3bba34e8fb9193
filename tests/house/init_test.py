# SPDX-License-Identifier: Apache-2.0
"""lockstep init: the jobs that it writes are sound and train, whatever the data are."""
import io
import json
import os
import random
import re
import shutil
import struct
import subprocess
import tarfile
import tempfile
import unittest
import zlib
from pathlib import Path

LOCKSTEP = os.environ["LOCKSTEP_BINARY"]
GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def write_npy(path, descr, extents, values):
    """values: bytes."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({', '.join(map(str, extents))},), }}"
    header = header.ljust(118 - 1) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values)


def write_grey_png(path, width, height, pixel):
    """pixel(x, y): a byte."""
    write_png(path, width, height, lambda x, y: (pixel(x, y),), 0)


def write_png(path, width, height, pixel, color=2):
    """pixel(x, y): three bytes; of color 0, grey, one."""
    rows = b"".join(b"\0" + bytes(byte for x in range(width) for byte in pixel(x, y)) for y in range(height))

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class Init(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.random = random.Random(1)

    def lockstep(self, *arguments):
        return subprocess.run([LOCKSTEP, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, check=False)

    def expect_done(self, *arguments):
        done = self.lockstep(*arguments)
        self.assertEqual(0, done.returncode, f"{arguments}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def expect_trains(self, *arguments, has=()):
        """The text of the job that init writes for the arguments."""
        self.expect_done("init", *arguments, "--out", "job.pbtxt")
        self.assertNotIn("warning", self.expect_done("validate", "job.pbtxt"))
        self.expect_done("train", "job.pbtxt", "--set", "train.steps=2", "--set", "schedule=unset", "--quiet",
                         "--resume", "never")
        text = (self.folder / "job.pbtxt").read_text(encoding="utf-8")
        for part in has:
            self.assertIn(part, text)
        return text

    def numbers(self, count):
        return struct.pack(f"<{count}f", *(self.random.gauss(3, 2) for _ in range(count)))

    def test_images(self):
        for split, count in (("train", 6), ("val", 2)):
            for name in ("cat", "dog"):
                (self.folder / "pets" / split / name).mkdir(parents=True)
                for i in range(count):
                    write_png(self.folder / "pets" / split / name / f"{i}.png", 40, 32,
                              lambda x, y: (self.random.randrange(256), 10, 20))
        self.expect_trains("pets", has=["resnet { depth: 18 stem: CIFAR }", 'folder: "pets/train" size: 32', "flip: true",
                                        "eval { image_folder", "measured on 12 training samples", 'best: "eval.accuracy"'])

    def test_damaged_images_are_all_listed_and_left_out(self):
        for name in ("cat", "dog"):
            (self.folder / "pets" / name).mkdir(parents=True)
            for i in range(6):
                write_png(self.folder / "pets" / name / f"{i}.png", 40, 32, lambda x, y: (x, 10, y))
        for name in ("cat/2.png", "dog/0.png", "dog/5.png"):
            content = (self.folder / "pets" / name).read_bytes()
            (self.folder / "pets" / name).write_bytes(content[:len(content) // 2])
        (self.folder / "pets/cat/7.gif").write_bytes(b"GIF89a")
        said = self.expect_done("init", "pets", "--out", "job.pbtxt")
        for part in ("3 of the training samples cannot be read", "on_error: SKIP", "cat/2.png", "dog/0.png", "dog/5.png",
                     "1 image of a format that is not read is left out: 1 .gif (the first: cat/7.gif)"):
            self.assertIn(part, said)
        self.assertIn("on_error: SKIP   # 3 samples cannot be read", (self.folder / "job.pbtxt").read_text(encoding="utf-8"))
        trained = self.expect_done("train", "job.pbtxt", "--set", "train.steps=2", "--set", "schedule=unset")
        self.assertIn("1 .gif", trained)
        for image in self.folder.glob("pets/*/*.png"):
            image.write_bytes(b"no image")
        refused = self.lockstep("init", "pets", "--out", "other.pbtxt")
        self.assertEqual(4, refused.returncode)
        self.assertIn("none of 12 images that were looked at can be read", refused.stderr)

    def test_arrays_of_classes_and_of_numbers(self):
        write_npy(self.folder / "x.npy", "<f4", (80, 5), self.numbers(400))
        write_npy(self.folder / "y.npy", "<i8", (80,), struct.pack("<80q", *(i % 3 for i in range(80))))
        write_npy(self.folder / "z.npy", "<f4", (80, 2), self.numbers(160))
        text = self.expect_trains("x.npy", "y.npy", has=["mlp {", "eval_share: 0.1\n", "eval_every", 'best: "eval.accuracy"'])
        held = int(re.search(r"# (\d+) of 80 samples are for evaluation alone", text).group(1))
        self.assertIn(f"{80 - held} samples of [5]", text)
        (self.folder / "job.pbtxt").unlink()
        self.expect_trains("x.npy", "z.npy", has=["target_kind: NUMBERS"])

    def write_houses(self, name, count, first):
        """Prices that follow from rooms and town, with blank cells, a number a line and a name a line."""
        lines = ["id,owner,rooms,town,country,price"]
        for i in range(first, first + count):
            rooms, town = self.random.randrange(1, 8), self.random.choice(["Ulm", "Bonn", "Kiel", "NA"])
            price = 200_000 + 30_000 * rooms + {"Ulm": 80_000, "Bonn": -50_000}.get(town, 0) + self.random.gauss(0, 5000)
            lines.append(f"{i},owner {i},{'' if i % 10 == 0 else rooms},{town},de,{price:.2f}")
        (self.folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def test_a_table_with_blank_cells_words_and_names(self):
        self.write_houses("train.csv", 600, 0)
        self.write_houses("val.csv", 100, 600)
        text = self.expect_trains("train.csv", "val.csv", has=[
            "# left out: id, because it numbers the lines\n", "# left out: owner, because its words are all different",
            "# left out: country, because it has one value\n", 'features: ["rooms", "town"]', "blanks: FILL   # ",
            "rooms (60 of 600 lines), town (", "words: ONE_HOT   # ", "standardize: true   # ",
            "  # measured on 600 training samples; for the loss alone", "  normalize_target { mean: 3",
            'eval { csv { files: "val.csv" target_kind: NUMBERS } }',
            'early_stopping { metric: "eval.loss" patience: 4 }'])
        self.assertNotIn("normalize {", text)
        self.expect_done("train", "job.pbtxt", "--quiet", "--resume", "never", "--device", "cpu")
        figures = json.loads(self.expect_done("eval", "job.pbtxt", "--device", "cpu", "--json").splitlines()[-1])
        # A blank cell says nothing of the rooms.
        self.assertGreater(figures["r2"], 0.85)
        self.assertLess(figures["rmse"], 0.4 * figures["baseline"]["rmse"])

    def test_volumes_with_masks(self):
        (self.folder / "scans").mkdir()
        write_npy(self.folder / "scans/images.npy", "<f4", (6, 8, 9, 8, 1), self.numbers(6 * 576))
        write_npy(self.folder / "scans/masks.npy", "|u1", (6, 8, 9, 8), bytes(i % 2 for i in range(6 * 576)))
        self.expect_trains("scans", has=["unet3d { levels: 1", "patch: [8, 8, 8]", "loss: BCE_DICE"])

    def test_volumes_of_differing_extents_in_folders(self):
        for split, count in (("train", 4), ("val", 2)):
            for i in range(count):
                extents = (17 + i, 16, 18)
                voxels = extents[0] * extents[1] * extents[2]
                for part in ("imagesTr", "labelsTr"):
                    (self.folder / "scans" / split / part).mkdir(parents=True, exist_ok=True)
                write_npy(self.folder / f"scans/{split}/imagesTr/{i}.npy", "<f4", (*extents, 1), self.numbers(voxels))
                write_npy(self.folder / f"scans/{split}/labelsTr/{i}.npy", "|u1", extents, bytes(k % 3 for k in range(voxels)))
        text = self.expect_trains("scans", has=["unet3d { levels: 2", "patch: [16, 16, 16]", "target_kind: CLASSES",
                                                'images: "scans/train/imagesTr" masks: "scans/train/labelsTr"', "eval { volumes"])
        self.assertNotIn("BCE_DICE", text)
        (self.folder / "job.pbtxt").unlink()
        for masks in self.folder.glob("scans/*/labelsTr/*.npy"):
            masks.write_bytes(masks.read_bytes()[:128] + masks.read_bytes()[128:].replace(b"\2", b"\0"))
        self.expect_trains("scans/train", has=["loss: BCE_DICE", "of 4 samples are for evaluation alone"])

    def test_nothing_is_held_out_where_all_samples_are_alike(self):
        write_npy(self.folder / "x.npy", "<f4", (20, 5), bytes(400))
        write_npy(self.folder / "y.npy", "<i8", (20,), struct.pack("<20q", *(i % 2 for i in range(20))))
        text = self.expect_trains("x.npy", "y.npy", has=["no data to evaluate on were found"])
        self.assertNotIn("eval_share", text)

    def test_the_windows_that_are_named_are_those_of_the_job(self):
        for i in range(4):
            extents = (35 + i, 34, 34)
            voxels = extents[0] * extents[1] * extents[2]
            for part in ("images", "masks"):
                (self.folder / "brain" / part).mkdir(parents=True, exist_ok=True)
            write_npy(self.folder / f"brain/images/{i}.npy", "<f4", (*extents, 1), bytes(4 * voxels))
            write_npy(self.folder / f"brain/masks/{i}.npy", "|u1", extents, bytes(k % 2 for k in range(voxels)))
        said = self.expect_done("init", "brain", "--out", "job.pbtxt")
        text = (self.folder / "job.pbtxt").read_text(encoding="utf-8")
        self.assertIn("patch: [32, 32, 32]", text)
        self.assertIn("samples of [32, 32, 32, 1]", text)
        self.assertNotIn("35", said + text)

    def test_images_with_masks(self):
        for split, count in (("train", 6), ("val", 2)):
            for part in ("images", "masks"):
                (self.folder / "street" / split / part).mkdir(parents=True)
            for i in range(count):
                write_png(self.folder / f"street/{split}/images/{i}.png", 40, 32, lambda x, y: (5 * x, 10, 7 * y))
                write_grey_png(self.folder / f"street/{split}/masks/{i}.png", 40, 32, lambda x, y: 255 if y == 0 else (x + y) % 3)
        self.expect_trains("street", has=["unet2d { levels: 3", 'images: "street/train/images" masks: "street/train/masks"',
                                          "size: 32 classes: 3", "pixels of 255 in the masks count for nothing", "flip: true",
                                          'best: "eval.mean_iou"'])
        (self.folder / "job.pbtxt").unlink()
        whole = {}
        for name in ("masks/1.png", "images/4.png"):
            path = self.folder / "street/train" / name
            whole[path] = path.read_bytes()
            path.write_bytes(whole[path][:60])
        said = self.expect_done("init", "street", "--out", "job.pbtxt")
        for part in ("2 of the training samples cannot be read", "masks/1.png (sample 1)", "images/4.png (sample 4)"):
            self.assertIn(part, said)
        self.assertIn("on_error: SKIP", (self.folder / "job.pbtxt").read_text(encoding="utf-8"))
        self.expect_done("train", "job.pbtxt", "--set", "train.steps=2", "--set", "schedule=unset", "--quiet", "--resume", "never")
        (self.folder / "job.pbtxt").unlink()
        for path, content in whole.items():
            path.write_bytes(content)
        (self.folder / "one").mkdir()
        for part in ("images", "masks"):  # images/train and masks/train
            (self.folder / "one" / part).mkdir()
            (self.folder / "street/train" / part).rename(self.folder / "one" / part / "train")
        for mask in (self.folder / "one/masks/train").iterdir():
            write_grey_png(mask, 40, 32, lambda x, y: 255 if x > y else 0)
        self.expect_trains("one", has=["target_kind: NUMBERS", "loss: BCE_DICE", 'images: "one/images/train"'])

    def test_a_vocabulary_beside_a_text_encodes_it(self):
        (self.folder / "corpus.txt").write_text("to be or not to be, " * 300, encoding="utf-8")
        # As GPT-2's: a token a byte, whose letter is printable, and joined ones.
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = [byte for byte in range(256) if byte not in printable]
        letters = [chr(byte if byte in printable else 256 + others.index(byte)) for byte in range(256)]
        vocabulary = {token: i for i, token in enumerate([*letters, "to", "be"])}
        (self.folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
        (self.folder / "merges.txt").write_text("#version: 0.2\nt o\nb e\n", encoding="utf-8")
        self.expect_trains("corpus.txt", "vocab.json", "merges.txt", "--context", 16,
                           has=['files: "corpus.txt"', 'vocab_file: "vocab.json" merges_file: "merges.txt"'])
        golden = json.loads((GOLDEN / "tokenizers.json").read_text(encoding="utf-8"))
        (self.folder / "tokenizer.json").write_text(json.dumps(golden["tokenizers"]["gpt2"]["file"]), encoding="utf-8")
        (self.folder / "job.pbtxt").unlink()
        self.expect_trains("corpus.txt", "tokenizer.json", "--context", 16,
                           has=['files: "corpus.txt"', 'tokenizer_file: "tokenizer.json"'])

    def test_shards(self):
        write_png(self.folder / "a.png", 40, 32, lambda x, y: (x, y, 20))
        for number in range(9, 12):
            with tarfile.open(self.folder / f"train-{number:03}.tar", "w") as shard:
                for i in range(4):
                    shard.add(self.folder / "a.png", f"{number}-{i}.png")
                    label = tarfile.TarInfo(f"{number}-{i}.cls")
                    label.size = 1
                    shard.addfile(label, io.BytesIO(str(i % 2).encode()))
        (self.folder / "val-0.tar").write_bytes((self.folder / "train-009.tar").read_bytes())
        (self.folder / "a.png").unlink()
        (self.folder / "{a,b}").mkdir()
        (self.folder / "{a,b}/x{1}.tar").write_bytes((self.folder / "val-0.tar").read_bytes())
        self.expect_trains("{a,b}", has=[r'files: "\\{a,b\\}/x\\{1\\}.tar"'])
        (self.folder / "job.pbtxt").unlink()
        shutil.rmtree(self.folder / "{a,b}")
        self.expect_trains(".", has=["resnet { depth: 18 stem: CIFAR }", 'train { shards { files: "train-{009..011}.tar" size: 32',
                                     'eval { shards { files: "val-0.tar"', "measured on 12 training samples", "in 2 classes"])

    def test_tables(self):
        (self.folder / "t.csv").write_text("a,b,kind\n" + "".join(f"{i},{i % 7},{'even' if i % 2 else 'odd'}\n"
                                                                   for i in range(100)), encoding="utf-8")
        self.expect_trains("t.csv", has=["mlp {", 'files: "t.csv"', 'features: "b"', "standardize: true", "a, because it numbers"])
        (self.folder / "job.pbtxt").unlink()
        (self.folder / "a\"b.tsv").write_text("".join(f"{i}\t{i / 7}\n" for i in range(100)), encoding="utf-8")
        self.expect_trains("a\"b.tsv", has=["header: false", "target_kind: NUMBERS", 'files: "a\\"b.tsv"',
                                           "normalize_target { mean: 7.071 std: 4.124 }"])

    def test_quoted_headers_and_columns_without_a_name(self):
        rows = "".join(f'{i},"n{i % 3}",{i / 7},{i * 2},{i % 2}\n' for i in range(100))
        (self.folder / "t.csv").write_text('"","city","x","x","kind"\n' + rows, encoding="utf-8")
        self.expect_trains("t.csv", has=['features: ["city", "2", "3"]', "left out: 0, because it numbers the lines"])

    def test_a_mean_has_the_digits_that_its_deviation_needs(self):
        rows = [number for i in range(100) for number in (1700000000 + 3600 * i, i / 7)]
        write_npy(self.folder / "x.npy", "<f8", (100, 2), struct.pack("<200d", *rows))
        write_npy(self.folder / "y.npy", "<i8", (100,), struct.pack("<100q", *(i % 2 for i in range(100))))
        text = self.expect_trains("x.npy", "y.npy")
        mean = float(re.search(r"mean: \[([^,]+),", text).group(1))
        self.assertLess(abs(mean - (1700000000 + 3600 * 49.5)), 200)

    def test_a_value_that_is_not_finite_is_told_of_its_file_and_sample(self):
        write_npy(self.folder / "x.npy", "<f4", (80, 5), self.numbers(66) + struct.pack("<f", float("nan")) + self.numbers(333))
        write_npy(self.folder / "y.npy", "<i8", (80,), struct.pack("<80q", *(i % 3 for i in range(80))))
        refused = self.lockstep("init", "x.npy", "y.npy")
        self.assertNotEqual(0, refused.returncode)
        self.assertIn("x.npy: sample 13 holds nan", refused.stderr)

    def test_the_command_that_comes_next_is_quoted_for_a_shell(self):
        (self.folder / "a.txt").write_text("to be or not to be, " * 300, encoding="utf-8")
        self.assertIn("lockstep train 'my '\\''job'\\''.pbtxt'\n", self.expect_done("init", "a.txt", "--out", "my 'job'.pbtxt"))
        self.assertIn("lockstep train plain.pbtxt\n", self.expect_done("init", "a.txt", "--out", "plain.pbtxt"))

    def test_texts(self):
        (self.folder / "my text.txt").write_text("to be or not to be, " * 300, encoding="utf-8")
        self.expect_trains("my text.txt", "--context", 16, has=["gpt {", "context: 16", "end: 0.9", "begin: 0.9"])
        (self.folder / "job.pbtxt").unlink()
        self.expect_trains("my text.txt", "--model", "llama", "--epochs", 1, has=["llama {", "# 1 epoch of"])
        (self.folder / "job.pbtxt").unlink()
        self.expect_trains("my text.txt", "--model", "bert", "--epochs", 1, has=["bert {", "masked {}"])

    def test_idx_and_cifar(self):
        self.expect_trains(Path(__file__).resolve().parents[2] / "configs/data/digits",
                           has=["convnet {", "test-images-idx3-ubyte.gz", "measured on 512 training samples, spread over all"])
        (self.folder / "job.pbtxt").unlink()
        for name, count in (("data_batch_1.bin", 20), ("test_batch.bin", 5)):
            (self.folder / name).write_bytes(b"".join(bytes([i % 10]) + self.random.randbytes(3072) for i in range(count)))
        self.expect_trains("data_batch_1.bin", "test_batch.bin", "--model", "convnet", has=["cifar {", "pad_crop"])
        (self.folder / "job.pbtxt").unlink()
        self.expect_trains("data_batch_1.bin", "test_batch.bin", "--model", "vit", "--epochs", 1, has=["vit { patch: 4"])
        (self.folder / "job.pbtxt").unlink()
        # A model without a recipe of its own.
        self.expect_trains("data_batch_1.bin", "test_batch.bin", "--model", "mobilenet_v2", "--epochs", 1,
                           has=["mobilenet_v2 { small_images: true }", "pad_crop: 4 flip: true"])

    def test_writes_over_no_file_and_names_the_job_after_the_data(self):
        (self.folder / "a.b-c d.txt").write_text("to be or not to be, " * 300, encoding="utf-8")
        self.expect_done("init", "a.b-c d.txt")
        self.assertIn('name: "a"', (self.folder / "a.pbtxt").read_text(encoding="utf-8"))
        again = self.lockstep("init", "a.b-c d.txt")
        self.assertEqual(2, again.returncode)
        self.assertIn("a.pbtxt exists already", again.stderr)

    def test_a_model_that_does_not_fit_is_refused_and_nothing_is_written(self):
        write_npy(self.folder / "x.npy", "<f4", (80, 5), self.numbers(400))
        write_npy(self.folder / "y.npy", "<i8", (80,), bytes(640))
        for model, why in (("resnet50", "needs images"), ("vit", "needs images"), ("gpt", "learns texts"), ("vgg", "no model \"vgg\"")):
            refused = self.lockstep("init", "x.npy", "y.npy", "--model", model)
            self.assertEqual(2, refused.returncode, refused.stdout)
            self.assertIn(why, refused.stderr)
        self.assertEqual([], list(self.folder.glob("*.pbtxt")))


if __name__ == "__main__":
    unittest.main()
