# SPDX-License-Identifier: Apache-2.0
"""From data as people have them to predictions, in the commands of docs/train-your-own-data.md and docs/predict.md, five
or fewer: --set makes the trainings short."""
import csv
import gzip
import io
import json
import random
import shlex
import shutil
import struct
import subprocess
import sys
import unittest
from pathlib import Path

from runs import LOCKSTEP, RunTest, png, read_tensors

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
from photographs import jpeg, webp  # noqa: E402


def cells(text):
    return list(csv.DictReader(io.StringIO(text)))


class Walks(RunTest):
    def setUp(self):
        super().setUp()
        self.random = random.Random(1)

    def put(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def text_in(self, name):
        return (self.folder / name).read_text(encoding="utf-8")

    def call(self, line, *settings, folder="."):
        """Runs a command of a page; its stdout and stderr."""
        command = [LOCKSTEP, *shlex.split(line)[1:]]
        for setting in settings:
            command += ["--set", setting]
        done = subprocess.run(command, cwd=self.folder / folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, f"{line}\n{done.stdout}{done.stderr}")
        return done.stdout, done.stderr

    def short(self, steps):
        return (f"train.steps={steps}", "schedule=unset", "checkpoint.every_steps=0", f"train.eval_every={steps}")

    def photograph(self, kind, orientation=None):
        """Warm, or cold, with a pattern."""
        warm = self.random.randrange(150, 250)
        shade = self.random.randrange(0, 100)
        return jpeg(5, 4, lambda x, y: (warm, 9 * x, shade) if kind == "fire" else (shade, 9 * y, warm), orientation)

    def take_photographs(self):
        # As many without a pattern: a training of a few steps learns both whatever the processor's products round to.
        for kind, color in (("fire", lambda i: (220 - 2 * i, 20, 40)), ("ice", lambda i: (30, 20, 230 - 2 * i))):
            for i in range(24):
                self.put(f"photos/{kind}/{i:02}.jpg", self.photograph(kind, 6 if i == 3 else None))
                self.put(f"photos/{kind}/{25 + i}.webp", webp(40, 32, color(i)))
            self.put(f"new/{kind}.JPG", self.photograph(kind))
            self.put(f"new/more/{kind}.webp", webp(36, 40, color(5)))
        self.put("photos/ice/07.jpg", self.photograph("ice")[:150])
        self.put("photos/ice/notes.txt", "of last winter")

    def test_photographs(self):
        self.take_photographs()
        said = "".join(self.call("lockstep init photos --out photos.pbtxt"))
        self.assertIn("ice/07.jpg", said)
        job = self.text_in("photos.pbtxt")
        for line in ("on_error: SKIP", "exif_orientation: true", "eval_share: 0.1"):
            self.assertIn(line, job)
        trained, _ = self.call("lockstep train photos.pbtxt", *self.short(30), "model.resnet.width=8")
        self.assertRegex(trained, r"next +lockstep eval runs/photos\n +lockstep infer runs/photos --input PATH")
        predicted, said = self.call("lockstep infer runs/photos --input new/")
        self.assertEqual("", said)
        rows = cells(predicted)
        self.assertEqual([(row["path"], row["name"]) for row in rows],
                         [("new/fire.JPG", "fire"), ("new/ice.JPG", "ice"), ("new/more/fire.webp", "fire"),
                          ("new/more/ice.webp", "ice")])
        # Alone in an empty folder.
        (self.folder / "alone").mkdir()
        shutil.move(self.folder / "runs/photos", self.folder / "alone/photos-run")
        for gone in ("photos", "runs"):
            shutil.rmtree(self.folder / gone)
        (self.folder / "photos.pbtxt").unlink()
        shutil.move(self.folder / "new", self.folder / "alone/new")
        for i in range(6):
            for kind in ("fire", "ice"):
                self.put(f"alone/others/{kind}/{i}.jpg", self.photograph(kind))
        self.put("alone/new/torn.jpg", self.photograph("ice")[:150])
        again, said = self.call("lockstep infer photos-run --input new/", folder="alone")
        self.assertIn("1 of 5 inputs could not be read", said)
        self.assertEqual([row for row in cells(again) if row["class"]], rows)
        result, _ = self.call("lockstep eval photos-run --json", "data.eval.image_folder.folder=others/", folder="alone")
        self.assertEqual((json.loads(result)["samples"], json.loads(result)["accuracy"]), (12, 1))
        self.call("lockstep export photos-run --out weights.safetensors", folder="alone")
        self.assertTrue(read_tensors(self.folder / "alone/weights.safetensors"))
        self.call("lockstep export photos-run --onnx photos.onnx", folder="alone")
        self.assertIn(b"output", (self.folder / "alone/photos.onnx").read_bytes())
        self.call("lockstep export photos-run --bundle photos.lockstep", folder="alone")
        shutil.rmtree(self.folder / "alone/photos-run")
        self.assertEqual(again, self.call("lockstep infer photos.lockstep --input new/", folder="alone")[0])

    def scan(self, extents):
        """A bright ball in a dim volume, and its mask, as NIfTI files that lie somewhere."""
        depth, height, width = extents
        center = [self.random.randrange(6, extent - 5) for extent in extents]
        inside = [(z - center[0])**2 + (y - center[1])**2 + (x - center[2])**2 < 25
                  for z in range(depth) for y in range(height) for x in range(width)]
        header = bytearray(352)
        struct.pack_into("<i", header, 0, 348)
        struct.pack_into("<8h", header, 40, 3, width, height, depth, 1, 1, 1, 1)
        struct.pack_into("<8f", header, 76, -1, 0.5, 0.75, 2.5, 0, 0, 0, 0)
        struct.pack_into("<3f", header, 108, 352, 1, 0)
        struct.pack_into("<2h", header, 252, 0, 2)
        struct.pack_into("<12f", header, 280, 0.5, 0, 0, -10, 0, 0.75, 0, 20, 0, 0, 2.5, self.random.random())
        header[344:348] = b"n+1\0"

        def file(code, bits, content):
            struct.pack_into("<2h", header, 70, code, bits)
            return bytes(header) + content
        values = (self.random.gauss(300 if i else 100, 20) for i in inside)
        return (file(16, 32, struct.pack(f"<{len(inside)}f", *values)), file(2, 8, bytes(inside)))

    def test_scans(self):
        for i in range(8):
            scan, mask = self.scan((16 + i, 18, 20 - i % 3))
            self.put(f"scans/images/{i}.nii.gz", gzip.compress(scan, 1, mtime=0))
            self.put(f"scans/masks/{i}.nii.gz", gzip.compress(mask, 1, mtime=0))
        new, answer = self.scan((21, 17, 19))
        self.put("new/patient.nii", new)
        self.call("lockstep init scans --out scans.pbtxt")
        self.call("lockstep train scans.pbtxt", *self.short(60), "optimizer.adamw.lr=0.01")
        figures, _ = self.call("lockstep eval runs/scans --whole-volumes")
        self.assertRegex(figures, r"dice +\d")
        self.call("lockstep infer runs/scans --input new/ --out masks/")
        found = (self.folder / "masks/patient.nii").read_bytes()
        for begin, end in ((40, 56), (76, 92), (252, 328)):  # extents, voxels' sizes, the affine
            self.assertEqual(new[begin:end], found[begin:end])
        expected = answer[352:]
        probabilities = struct.unpack(f"<{len(expected)}f", found[352:])
        both = sum(p > 0.5 and y == 1 for p, y in zip(probabilities, expected))
        dice = 2 * both / (sum(p > 0.5 for p in probabilities) + sum(expected))
        self.assertGreater(dice, 0.8)

    def test_a_text(self):
        self.put("counting.txt", "one two three four five six seven eight nine ten " * 100)
        self.put("prompts.txt", "one two \nseven \n")
        self.call("lockstep init counting.txt --context 16 --out counting.pbtxt")
        # Small, so that it is fast. With a schedule and so many steps it learns whatever the seed is, and so whatever the
        # processor's products round to.
        self.call("lockstep train counting.pbtxt", *self.short(600), "schedule.cosine.warmup_steps=10",
                  "optimizer.adamw.lr=0.01", "data.global_batch=16", "model.gpt.layers=2", "model.gpt.width=32",
                  "model.gpt.heads=2", "model.gpt.dropout=0")
        text, _ = self.call("lockstep infer runs/counting --prompt 'one two ' --tokens 11 --temperature 0")
        self.assertEqual("one two three four ", text.rstrip("\n"))
        lines, _ = self.call("lockstep infer runs/counting --input prompts.txt --tokens 11 --temperature 0 --json")
        self.assertEqual(["three four ", "eight nine "], [json.loads(line)["text"] for line in lines.splitlines()])

    def passengers(self, first, count):
        """As Titanic's: numbers with blank cells, words, names, and a class that follows from them, mostly."""
        lines = []
        for i in range(first, first + count):
            sex, cabin = self.random.choice(("male", "female")), self.random.choice((1, 2, 3))
            age = "" if self.random.random() < 0.2 else f"{self.random.uniform(1, 70):.1f}"
            port = self.random.choice(("S", "C", "Q", ""))
            survived = int((sex == "female" and cabin < 3) != (self.random.random() < 0.05))
            lines.append(f'{i},{survived},{cabin},"Passenger, Mr. {i}",{sex},{age},{80 / cabin + self.random.gauss(0, 5):.2f},{port}')
        return lines

    def test_a_table_of_passengers(self):
        header = "PassengerId,Survived,Pclass,Name,Sex,Age,Fare,Embarked"
        self.put("titanic.csv", "\n".join([header, *self.passengers(1, 500)]) + "\n")
        known = cells("\n".join([header, *self.passengers(501, 100)]))
        without = [column for column in header.split(",") if column != "Survived"]
        new = io.StringIO()
        writer = csv.DictWriter(new, without, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(known)
        self.put("new.csv", new.getvalue())
        said = "".join(self.call("lockstep init titanic.csv --target Survived --out titanic.pbtxt"))
        job = self.text_in("titanic.pbtxt")
        for line in ("left out: PassengerId", "Name, because its words are all different", "blanks: FILL", "words: ONE_HOT"):
            self.assertIn(line, said + job)
        self.call("lockstep train titanic.pbtxt --quiet")
        figures, _ = self.call("lockstep eval runs/titanic")
        self.assertRegex(figures, r"accuracy +[\d.]+ % \(baseline")
        self.call("lockstep infer runs/titanic --input new.csv --out predictions.csv")
        rows = cells(self.text_in("predictions.csv"))
        self.assertEqual([str(i) for i in range(100)], [row["row"] for row in rows])
        right = sum(row["name" if "name" in row else "class"] == one["Survived"] for row, one in zip(rows, known))
        self.assertGreater(right, 85)

    def test_a_table_of_houses(self):
        rows = []
        for i in range(600):
            rooms, town = self.random.randrange(1, 8), self.random.choice(("Ulm", "Bonn", "Kiel"))
            price = 30_000 * rooms + {"Ulm": 200_000, "Bonn": 90_000, "Kiel": 120_000}[town] + self.random.gauss(0, 5000)
            rows.append((f"{i},{'NA' if i % 20 == 0 else rooms},{town}", price))
        self.put("houses.csv", "id,rooms,town,price\n" + "".join(f"{row},{price:.0f}\n" for row, price in rows[:500]))
        self.put("houses_new.csv", "id,rooms,town\n" + "".join(f"{row}\n" for row, _ in rows[500:]))
        self.call("lockstep init houses.csv --target price --out houses.pbtxt")
        self.call("lockstep train houses.pbtxt --quiet")
        self.assertRegex(self.call("lockstep eval runs/houses")[0], r"rmse +[\d.]+ \(baseline [\d.]+\)")
        self.call("lockstep infer runs/houses --input houses_new.csv --out prices.csv")
        found = [float(row["prediction"]) for row in cells(self.text_in("prices.csv"))]
        known = [price for _, price in rows[500:]]
        mean = sum(known) / len(known)
        error = sum((a - b)**2 for a, b in zip(found, known, strict=True))
        self.assertLess(error, 0.1 * sum((price - mean)**2 for price in known))

    def test_sparse_rows(self):
        def row(label):
            signs = [self.random.choice((-1, 1)) for _ in range(4)]
            target = "+1" if signs[0] * signs[1] > 0 else "-1"
            return target, (f"{target} " if label else "") + " ".join(f"{2 * i + 1}:{sign}" for i, sign in enumerate(signs))
        self.put("rows.svm", "".join(row(True)[1] + "\n" for _ in range(300)))
        expected, lines = zip(*(row(i % 2) for i in range(20)))
        self.put("new.svm", "\n".join([*lines, "1 99:1"]) + "\n")
        self.call("lockstep init rows.svm --out rows.pbtxt")
        self.call("lockstep train rows.pbtxt --quiet")
        predicted, said = self.call("lockstep infer runs/rows --input new.svm")
        self.assertIn("new.svm:21: index 99: the model's 7 features have the indices 1 to 7", said)
        rows = cells(predicted)
        self.assertEqual([(row["row"], row["name"]) for row in rows],
                         [*((str(i), str(int(target))) for i, target in enumerate(expected)), ("20", "")])


if __name__ == "__main__":
    unittest.main()
