# SPDX-License-Identifier: Apache-2.0
"""lockstep infer for every model: what it answers, in each of the formats that hold it."""
import csv
import json
import struct
import subprocess
import unittest

from runs import LOCKSTEP, RunTest, read_npy

DIGITS = ("train.steps=3", "schedule=unset", "train.eval_every=0")
CLASSIFIERS = {"mlp": "model={ mlp { hidden: 16 } }",
               "convnet": "model={ convnet { block { channels: 4 stride: 2 } } }",
               "resnet": "model={ resnet { depth: 18 stem: CIFAR width: 4 } }"}
REGRESSION = """
name: "regression"
model { mlp { hidden: 8 } }
data { global_batch: 8 train { synthetic { samples: 32 shape: 5 target_size: 3 } }
       eval { synthetic { samples: 6 shape: 5 target_size: 3 } } }
optimizer { sgd { lr: 0.01 } }
train { steps: 2 loss: MSE }
"""
TEXT = """
name: "text"
model { %s }
data { global_batch: 8 train { tokens { files: "text.txt" context: 8 end: 0.8 } }
       eval { tokens { files: "text.txt" context: 8 begin: 0.8 } } }
optimizer { adamw { lr: 0.01 } }
train { steps: 20 }
"""
TABLE = """
name: "table"
model { mlp { hidden: 8 } }
data { global_batch: 8 train { csv { files: "train.csv" } } eval { csv { files: "eval.csv" } } }
optimizer { sgd { lr: 0.5 } }
train { steps: 40 }
"""
VOLUMES = """
name: "volumes"
model { unet3d { levels: 1 channels: 2 } }
data { global_batch: 2 train { arrays { features: "x.npy" targets: "y.npy" } }
       eval { arrays { features: "x.npy" targets: "y.npy" } } }
optimizer { adamw { lr: 0.01 } }
train { steps: 2 }
"""


def write_npy(path, descr, extents, content):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(extents)}, }}".ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + content)


class Predictions(RunTest):
    def job(self, text):
        path = self.folder / "job.pbtxt"
        path.write_text(text, encoding="utf-8")
        return path

    def infer(self, run, *options, code=0):
        command = [LOCKSTEP, "infer", str(run.directory / "job.pbtxt"), "--device", "cpu", "--checkpoint", str(run.directory),
                   *map(str, options)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def written(self, run, ending):
        path = self.folder / f"{run.directory.name}.{ending}"
        self.infer(run, "--out", path)
        return path

    def numbers(self, run, name, columns):
        """A row a sample of CSV, JSON lines and .npy, which are to say the same."""
        with open(self.written(run, "csv"), encoding="utf-8", newline="") as file:
            of_csv = list(csv.DictReader(file))
        lines = self.written(run, "jsonl").read_text(encoding="utf-8").splitlines()
        of_json = [json.loads(line) for line in lines]
        dtype, shape, values = read_npy(self.written(run, "npy"))
        self.assertEqual((dtype, shape), ("<f4", (len(of_csv), columns)))
        self.assertEqual(len(of_json), len(of_csv))
        rows = [list(values[i * columns:(i + 1) * columns]) for i in range(len(of_csv))]
        for i, row in enumerate(rows):
            numbers = [value for key, value in of_csv[i].items() if key not in ("sample", "class")]
            self.assert_close([float(value) for value in numbers], row, 1e-6)
            self.assert_close(of_json[i][name], row, 1e-6)
            self.assertEqual((int(of_csv[i]["sample"]), of_json[i]["sample"]), (i, i))
        return rows, of_csv, of_json

    def test_classifiers_give_classes_and_their_probabilities(self):
        for name, model in CLASSIFIERS.items():
            with self.subTest(name):
                rows, of_csv, of_json = self.numbers(self.train(name, *DIGITS, model), "probabilities", 10)
                self.assertEqual(len(rows), 297)
                for row, a, b in zip(rows, of_csv, of_json):
                    self.assertAlmostEqual(sum(row), 1, places=5)
                    self.assertEqual((int(a["class"]), b["class"]), (row.index(max(row)),) * 2)

    def test_classes_with_names_are_named(self):
        names = ("low", "high, or more")
        for name, count in (("train.csv", 40), ("eval.csv", 1)):
            rows = [f'{value},"{names[value > 0]}"' for value in (-1, 1) for _ in range(count)]
            (self.folder / name).write_text("x,class\n" + "\n".join(rows) + "\n", encoding="utf-8")
        run = self.train("run", job=self.job(TABLE))
        with open(self.written(run, "csv"), encoding="utf-8", newline="") as file:
            of_csv = [(int(row["class"]), row["name"]) for row in csv.DictReader(file)]
        lines = self.written(run, "jsonl").read_text(encoding="utf-8").splitlines()
        self.assertEqual(of_csv, [(1, "low"), (0, "high, or more")])  # in the order of their names
        self.assertEqual([(row["class"], row["name"]) for row in map(json.loads, lines)], of_csv)

    def test_a_regression_gives_values(self):
        rows, of_csv, of_json = self.numbers(self.train("run", job=self.job(REGRESSION)), "values", 3)
        self.assertEqual(len(rows), 6)
        self.assertNotIn("class", of_csv[0])
        self.assertNotIn("class", of_json[0])

    def test_a_unet3d_gives_the_class_of_each_voxel(self):
        write_npy(self.folder / "x.npy", "<f4", (3, 4, 4, 6, 1), struct.pack("<288f", *(i % 7 for i in range(288))))
        write_npy(self.folder / "y.npy", "|u1", (3, 4, 4, 6), bytes(i % 3 for i in range(288)))
        run = self.train("run", job=self.job(VOLUMES))
        dtype, shape, classes = read_npy(self.written(run, "npy"))
        self.assertEqual((dtype, shape), ("<i8", (3, 4, 4, 6)))
        self.assertLessEqual(set(classes), {0, 1, 2})
        self.assertIn(".npy", self.infer(run, "--out", self.folder / "classes.csv", code=2))

    def test_language_models_give_the_next_token_of_each_place_and_write_on(self):
        (self.folder / "text.txt").write_text("abcd" * 100, encoding="utf-8")
        for name, model in {"gpt": "gpt { layers: 1 heads: 2 width: 16 context: 8 }",
                            "llama": "llama { layers: 1 heads: 2 width: 16 context: 8 hidden: 32 }"}.items():
            with self.subTest(name):
                run = self.train(name, "train.steps=60", "data.train.tokens.stride=3", job=self.job(TEXT % model))
                dtype, shape, tokens = read_npy(self.written(run, "npy"))
                self.assertEqual((dtype, shape), ("<i8", (len(tokens) // 8, 8)))
                self.assertIn(ord("a"), tokens)
                out = self.infer(run, "--prompt", "abcdab", "--tokens", 12, "--temperature", 0)
                self.assertEqual("abcdabcdabcdabcdab", out.strip())


if __name__ == "__main__":
    unittest.main()
