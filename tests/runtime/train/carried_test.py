# SPDX-License-Identifier: Apache-2.0
"""A run is enough: carried alone into another folder, without its job and its data, it predicts, is evaluated and
exported; as a directory, as a checkpoint and as a bundle."""
import array
import csv
import io
import json
import os
import shutil
import subprocess
import tarfile
import unittest

from runs import HAS_MPI, LOCKSTEP, CarriedTest, npy, png, read_npy, read_tensors

IMAGES = """
name: "images"
model { resnet { depth: 18 stem: CIFAR width: 4 } }
data { global_batch: 8 train { image_folder { folder: "data/train" size: 16 } }
       eval { image_folder { folder: "data/eval" size: 16 } }
       normalize { mean: [0.4, 0.5, 0.6] std: [0.2, 0.3, 0.4] } }
optimizer { sgd { lr: 0.01 } }
train { steps: 4 %s}
%s
"""
ARRAYS = """
name: "arrays"
model { mlp { hidden: 8 } }
data { global_batch: 8 train { arrays { features: "data/x.npy" targets: "data/y.npy" target_kind: %s } }
       normalize { mean: 1 std: 2 } }
optimizer { sgd { lr: 0.1 } }
train { steps: 4 %s }
"""
TABLE = """
name: "table"
model { mlp { hidden: 8 } }
data { global_batch: 8 train { csv { files: "data/t.csv" target_kind: %s blanks: FILL words: ONE_HOT } } %s
       normalize { mean: 20 std: 20 } }
optimizer { sgd { lr: 0.01 } }
train { steps: 2 }
"""
TEXT = """
name: "text"
model { gpt { layers: 1 width: 16 heads: 2 } }
data { global_batch: 4 train { tokens { files: "data/text.txt" context: 8 } } }
optimizer { adamw { lr: 0.01 } }
train { steps: 3 }
"""


def floats(count, begin=0.0):
    return [begin + 0.25 * (i * 7 % 11) for i in range(count)]


class CarriedRuns(CarriedTest):
    def paint(self, split, count):
        for i in range(count):
            path = self.home / "data" / split / ("red" if i % 2 else "blue") / f"{i:02}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            strong = 150 + 3 * i
            path.write_bytes(png(18 + i % 3, 20, lambda x, y, s=strong, odd=i % 2: (s if odd else x, y, x if odd else s)))

    def rows(self, text):
        return list(csv.DictReader(io.StringIO(text)))

    def images_run(self, *texts):
        self.paint("train", 16)
        self.paint("eval", 6)
        shutil.copytree(self.home / "data" / "eval", self.away / "photos")
        return self.trained(IMAGES % (texts or ("", "")))

    def test_a_run_alone_predicts_images(self):
        run = self.images_run()
        rows = self.rows(self.call("infer", run, "--input", "photos"))
        self.assertEqual([row["path"] for row in rows],
                         [f"photos/{name}" for name in ("blue/00.png", "blue/02.png", "blue/04.png", "red/01.png",
                                                        "red/03.png", "red/05.png")])
        for row in rows:
            self.assertEqual(row["name"], ("blue", "red")[int(row["class"])])
            self.assertAlmostEqual(float(row["p0"]) + float(row["p1"]), 1, places=5)
        # What evaluation data gave, the same files give.
        data = f"data.eval.image_folder.folder={self.away / 'photos'}"
        self.call("infer", run, "--set", data, "--out", "eval.csv")
        whole = self.rows((self.away / "eval.csv").read_text(encoding="utf-8"))
        self.assertEqual([(row["p0"], row["p1"]) for row in whole], [(row["p0"], row["p1"]) for row in rows])
        lines = self.call("infer", run, "--input", "photos/red/01.png", "photos/blue", "--json").splitlines()
        first = json.loads(lines[0])
        self.assertEqual((first["path"], len(lines)), ("photos/red/01.png", 4))
        self.assertEqual(first["probabilities"], [float(rows[3]["p0"]), float(rows[3]["p1"])])

    def test_a_run_alone_is_evaluated_on_given_data(self):
        run = self.images_run()
        # A class fewer than the training data have.
        shutil.rmtree(self.away / "photos" / "blue")
        result = json.loads(self.call("eval", run, "--set", "data.eval.image_folder.folder=photos", "--json"))
        self.assertEqual(result["samples"], 3)
        self.assertIn("no such folder", self.call("eval", run, "--set", "data.eval.image_folder.folder=none", code=2))
        self.assertIn("not where they were", self.call("eval", run, code=4))
        # Also where the job had a share for evaluation: classes, sizes and columns are those of training.

    def test_a_run_alone_is_exported(self):
        run = self.images_run()
        self.call("export", run, "--out", "weights.safetensors")
        self.assertTrue(read_tensors(self.away / "weights.safetensors"))
        self.call("export", run, "--onnx", "model.onnx")
        self.assertGreater((self.away / "model.onnx").stat().st_size, 1000)

    def test_a_bundle_predicts_what_its_run_does(self):
        run = self.images_run()
        expected = self.call("infer", run, "--input", "photos")
        self.call("export", run, "--bundle", "model.lockstep")
        self.call("export", run, "--bundle", "again.lockstep")
        self.assertEqual((self.away / "model.lockstep").read_bytes(), (self.away / "again.lockstep").read_bytes())
        shutil.rmtree(run)
        self.assertEqual(self.call("infer", "model.lockstep", "--input", "photos"), expected)
        self.call("export", "model.lockstep", "--onnx", "model.onnx")
        self.assertIn('["blue","red"]', self.call("inspect", "model.lockstep"))
        with tarfile.open(self.away / "model.lockstep") as bundle:
            description = json.load(bundle.extractfile("description.json"))
        self.assertEqual(description["class_names"], ["blue", "red"])
        self.assertEqual(description["step"], 4)

    def test_a_damaged_bundle_is_refused(self):
        run = self.images_run()
        self.call("export", run, "--bundle", "model.lockstep")
        content = bytearray((self.away / "model.lockstep").read_bytes())
        content[len(content) // 2] ^= 1
        (self.away / "flipped.lockstep").write_bytes(content)
        self.assertIn("is damaged", self.call("infer", "flipped.lockstep", "--input", "photos", code=4))
        (self.away / "cut.lockstep").write_bytes(content[:len(content) // 2])
        self.assertIn("cut.lockstep", self.call("infer", "cut.lockstep", "--input", "photos", code=4))
        (self.away / "text.lockstep").write_text("no bundle", encoding="utf-8")
        self.assertIn("text.lockstep", self.call("infer", "text.lockstep", "--input", "photos", code=4))
        with tarfile.open(self.away / "other.lockstep", "w") as archive:
            archive.add(self.away / "photos", "photos")
        self.assertIn("no manifest.json", self.call("infer", "other.lockstep", "--input", "photos", code=4))

    def test_the_best_weights_are_taken_unless_the_newest_are_asked_for(self):
        run = self.images_run("eval_every: 1 ", 'checkpoint { best: "eval.loss" every_steps: 4 }')
        best = next((run / "best").iterdir())
        shown = self.call("infer", run, "--input", "photos", "--out", "p.csv")
        self.assertIn(f"{best}, the best by eval.loss", shown)
        newest = self.call("infer", run, "--latest", "--input", "photos", "--out", "n.csv")
        self.assertIn("checkpoints/step-00000004\n", newest)
        self.assertIn("step-00000004", self.call("infer", run / "checkpoints/step-00000004", "--input", "photos", "--out", "c.csv"))
        self.assertEqual((self.away / "n.csv").read_bytes(), (self.away / "c.csv").read_bytes())
        self.assertIn("--checkpoint is for a job", self.call("infer", run, "--checkpoint", run, "--input", "photos", code=2))

    def test_inputs_that_cannot_be_read_are_named_and_the_others_predicted(self):
        run = self.images_run()
        sound = self.rows(self.call("infer", run, "--input", "photos"))
        (self.away / "photos/blue/02.png").write_bytes(b"\x89PNG damaged")
        done = subprocess.run([LOCKSTEP, "infer", str(run), "--input", "photos"], capture_output=True, text=True, check=False,
                              cwd=self.away)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("photos/blue/02.png", done.stderr)
        self.assertIn("1 of 6 inputs could not be read", done.stderr)
        rows = self.rows(done.stdout)
        self.assertEqual(rows[1], {"path": "photos/blue/02.png", "class": "", "name": "", "p0": "", "p1": ""})
        self.assertEqual(rows[:1] + rows[2:], sound[:1] + sound[2:])
        self.call("infer", run, "--input", "photos", "--strict", "--out", "p.jsonl", code=4)
        lines = [json.loads(line) for line in (self.away / "p.jsonl").read_text(encoding="utf-8").splitlines()]
        self.assertIn("error", lines[1])
        self.call("infer", run, "--input", "photos", "--out", "p.npy")
        _, shape, values = read_npy(self.away / "p.npy")
        self.assertEqual(shape, (6, 2))
        self.assertTrue(all(value != value for value in values[2:4]))

    def test_the_most_probable_classes_come_first(self):
        run = self.images_run()
        rows = self.rows(self.call("infer", run, "--input", "photos", "--top-k", "2"))
        self.assertEqual(list(rows[0]), ["path", "class", "name", "probability", "class2", "name2", "probability2"])
        for row in rows:
            self.assertGreaterEqual(float(row["probability"]), float(row["probability2"]))
        one = json.loads(self.call("infer", run, "--input", "photos/red/01.png", "--top-k", "1", "--json"))
        self.assertEqual(list(one["top"][0]), ["class", "name", "probability"])

    def test_a_subprocess_answers_line_by_line(self):
        run = self.images_run()
        rows = self.call("infer", run, "--input", "photos").splitlines()
        with subprocess.Popen([LOCKSTEP, "infer", str(run), "--input", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True, cwd=self.away) as process:
            self.assertEqual(process.stdout.readline().rstrip(), rows[0])
            for path, row in ((row.split(",")[0], row) for row in rows[1:]):
                process.stdin.write(path + "\n")
                process.stdin.flush()
                self.assertEqual(process.stdout.readline().rstrip(), row)
            process.stdin.write("none.png\nphotos/red/01.png")
            process.stdin.close()
            self.assertEqual(process.stdout.readline().rstrip(), "none.png,,,,")
            self.assertTrue(process.stdout.readline().startswith("photos/red/01.png,"))
        self.assertEqual(process.returncode, 0)

    def test_ranks_write_the_same_bytes(self):
        run = self.images_run()
        (self.away / "photos/red/03.png").write_bytes(b"no image")
        self.call("infer", run, "--input", "photos", "--set", "data.eval_batch=2", "--out", "one.csv")
        for ranks in (2, 3) if HAS_MPI else ():
            self.call("infer", run, "--input", "photos", "--set", "data.eval_batch=2", "--nproc", ranks, "--out", "some.csv")
            self.assertEqual((self.away / "some.csv").read_bytes(), (self.away / "one.csv").read_bytes())

    def test_wrong_inputs_are_refused(self):
        run = self.images_run()
        self.assertIn("no such file", self.call("infer", run, "--input", "gone.png", code=2))
        (self.away / "words.txt").write_text("words", encoding="utf-8")
        self.assertIn(".jpg", self.call("infer", run, "--input", "words.txt", code=2))
        (self.away / "empty").mkdir()
        self.assertIn("holds no file", self.call("infer", run, "--input", "empty", code=2))
        self.assertIn("no checkpoint", self.call("infer", self.away / "empty", "--input", "photos", code=4))

    def array_run(self, kind, loss, targets):
        (self.home / "data/x.npy").write_bytes(npy("<f4", (16, 3), array.array("f", floats(48)).tobytes()))
        (self.home / "data/y.npy").write_bytes(targets)
        return self.trained(ARRAYS % (kind, loss))

    def test_a_run_alone_predicts_arrays(self):
        numbers = npy("<f4", (16,), array.array("f", floats(16)).tobytes())
        run = self.array_run("NUMBERS", "loss: MSE", numbers)
        (self.away / "new.npy").write_bytes(npy("<f4", (4, 3), array.array("f", floats(12)).tobytes()))
        (self.away / "one.npy").write_bytes(npy("<f8", (3,), array.array("d", floats(3)).tobytes()))
        rows = self.rows(self.call("infer", run, "--input", "new.npy", "one.npy"))
        self.assertEqual(list(rows[0]), ["path", "row", "prediction"])
        self.assertEqual([(row["path"], row["row"]) for row in rows],
                         [("new.npy", str(i)) for i in range(4)] + [("one.npy", "0")])
        self.assertEqual(rows[4]["prediction"], rows[0]["prediction"])
        (self.away / "wide.npy").write_bytes(npy("<f4", (2, 4), array.array("f", floats(8)).tobytes()))
        self.assertIn("samples of [3]", self.call("infer", run, "--input", "wide.npy", code=2))

    def table_run(self, kind="CLASSES", rest="", *settings):
        lines = ["age,city,bought"]
        for i in range(40):
            age = "" if i % 9 == 4 else str(20 + i)
            city = ("Rome", '"Oslo, north"', "Bern")[i % 3]
            lines.append(f"{age},{city},{('no', 'yes')[i // 20] if kind == 'CLASSES' else i}")
        (self.home / "data/t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return self.trained(TABLE % (kind, rest), *settings)

    def test_a_run_alone_predicts_tables(self):
        run = self.table_run()
        (self.away / "new.csv").write_text('id,city,age\n7,Rome,23\n8,"Oslo, north",\n9,Bern,old\n10,Paris,55\n', encoding="utf-8")
        rows = self.rows(self.call("infer", run, "--input", "new.csv"))
        self.assertEqual([(row["path"], row["row"]) for row in rows], [("new.csv", str(i)) for i in range(4)])
        self.assertEqual([row["name"] in ("no", "yes") for row in rows], [True, True, False, True])
        self.assertEqual(rows[2]["p0"], "")
        (self.away / "lacking.csv").write_text("age\n23\n", encoding="utf-8")
        self.assertIn("city", self.call("infer", run, "--input", "lacking.csv", code=2))
        # As a subprocess: rows in, answers out.
        with subprocess.Popen([LOCKSTEP, "infer", str(run), "--input", "-", "--json"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True, cwd=self.away) as process:
            process.stdin.write("city,age\n")
            for i, line in enumerate(("Rome,23", '"Oslo, north",')):
                process.stdin.write(line + "\n")
                process.stdin.flush()
                answer = json.loads(process.stdout.readline())
                self.assertEqual((answer["path"], answer["row"], answer["name"]), ("-", i, rows[i]["name"]))
                self.assertEqual(answer["probabilities"], [float(rows[i]["p0"]), float(rows[i]["p1"])])
        self.assertEqual(process.returncode, 0)

    def test_a_share_gives_way_to_data_that_are_given(self):
        run = self.table_run("CLASSES", "eval_share: 0.2")
        (self.away / "given.csv").write_text("bought,city,age\nyes,Rome,23\nno,Bern,\n", encoding="utf-8")
        result = json.loads(self.call("eval", run, "--set", "data.eval.csv.files=given.csv", "--json"))
        self.assertEqual(result["samples"], 2)
        (self.away / "semicolons.csv").write_text("city;age\nRome;23\n", encoding="utf-8")
        (self.away / "commas.csv").write_text("city,age\nRome,23\n", encoding="utf-8")
        first, second = self.rows(self.call("infer", run, "--input", "semicolons.csv", "commas.csv"))
        self.assertEqual(first["p0"], second["p0"])

    def test_what_holds_no_sample_is_said(self):
        run = self.table_run()
        for content in ("", "city,age\n"):
            (self.away / "none.csv").write_text(content, encoding="utf-8")
            (self.away / "one.csv").write_text("city,age\nRome,23\n", encoding="utf-8")
            self.assertIn("holds no rows", self.call("infer", run, "--input", "none.csv", "--strict", code=4))
            rows = self.rows(self.call("infer", run, "--input", "none.csv", "one.csv"))
            self.assertEqual([row["p0"] == "" for row in rows], [True, False])
        self.assertIn("is an input", self.call("infer", run, "--input", "one.csv", "--out", "one.csv", code=2))
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([LOCKSTEP, "infer", str(run), "--input", "one.csv"], stdout=full, stderr=subprocess.PIPE,
                                  text=True, check=False, cwd=self.away)
        self.assertEqual(done.returncode, 4)
        self.assertIn("cannot write to stdout", done.stderr)

    def test_predictions_of_a_table_are_in_its_units(self):
        run = self.table_run("NUMBERS", "normalize_target { mean: 1000 std: 0.001 }", "optimizer.sgd.lr=1e-20", "train.loss=MSE")
        (self.away / "new.csv").write_text("city,age\nRome,23\n", encoding="utf-8")
        row, = self.rows(self.call("infer", run, "--input", "new.csv"))
        self.assertAlmostEqual(float(row["prediction"]), 1000, delta=1)

    def test_a_text_run_alone_writes_on(self):
        (self.home / "data/text.txt").write_text("one two three " * 40, encoding="utf-8")
        run = self.trained(TEXT)
        written = self.call("infer", run, "--prompt", "one ", "--tokens", "4", "--temperature", "0")
        self.assertTrue(written.startswith("one "))
        (self.away / "p.txt").write_text("one \n\ntwo\n", encoding="utf-8")
        (self.away / "p.jsonl").write_text('{"prompt": "one "}\n"two"\n{"wrong": 1}\n', encoding="utf-8")
        greedy = ("--tokens", "4", "--temperature", "0")
        lines = [json.loads(line) for line in self.call("infer", run, "--input", "p.txt", "p.jsonl", "--json", *greedy).splitlines()]
        self.assertEqual([(line["path"], line["line"]) for line in lines],
                         [("p.txt", 0), ("p.txt", 2), ("p.jsonl", 0), ("p.jsonl", 1), ("p.jsonl", 2)])
        self.assertEqual(lines[0]["prompt"] + lines[0]["text"] + "\n", written)
        self.assertEqual(lines[0]["text"], lines[2]["text"])
        self.assertEqual(lines[1]["text"], lines[3]["text"])
        self.assertIn("error", lines[4])
        rows = self.rows(self.call("infer", run, "--input", "p.txt", *greedy))
        self.assertEqual([row["text"] for row in rows], [line["text"] for line in lines[:2]])
        self.call("infer", run, "--input", "p.jsonl", "--strict", "--out", "p.csv", *greedy, code=4)

    def test_a_run_beside_its_job_is_found_from_another_folder(self):
        self.paint("train", 8)
        self.paint("eval", 2)
        job = self.home / "job.pbtxt"
        job.write_text(IMAGES % ("", ""), encoding="utf-8")
        missing = self.call("eval", job, code=4)
        self.assertIn("runs/images", missing)
        self.assertIn(str(self.home), missing)
        os.makedirs(self.home / "runs")
        run = self.train("run", job=job)
        shutil.move(run.directory, self.home / "runs" / "images")
        self.assertIn(str(self.home / "runs/images"), self.call("eval", job))


if __name__ == "__main__":
    unittest.main()
