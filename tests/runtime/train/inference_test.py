# SPDX-License-Identifier: Apache-2.0
"""lockstep infer: predictions of a checkpoint, the same whatever the number of ranks, and how 16 bits agree."""
import array
import csv
import json
import subprocess
import unittest

from runs import DIGITS, HAS_MPI, LOCKSTEP, RunTest

SHORT = ("train.steps=40", "schedule.cosine.warmup_steps=5", "train.eval_every=0")
SAMPLES = 297


class Inference(RunTest):
    def setUp(self):
        super().setUp()
        self.run_dir = self.train("run", *SHORT).directory

    def infer(self, *options, ranks=1, code=0, checkpoint=None):
        command = [LOCKSTEP, "infer", str(DIGITS), "--device", "cpu", "--checkpoint", str(checkpoint or self.run_dir),
                   "--json", *map(str, options)]
        if ranks > 1:
            command += ["--nproc", str(ranks)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout) if code == 0 else done.stderr

    def rows(self, path):
        with open(path, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def test_predicts_what_evaluation_counts(self):
        out = self.folder / "p.csv"
        result = self.infer("--out", out)
        done = subprocess.run([LOCKSTEP, "eval", str(DIGITS), "--set", "amp.opt_level=O0", "--set", "amp.dtype=FP32",
                               "--set", "comm.wire_dtype=FP32", "--device", "cpu", "--checkpoint", str(self.run_dir),
                               "--json"], capture_output=True, text=True, check=True)
        evaluation = json.loads(done.stdout)
        self.assertEqual((result["samples"], result["dtype"], result["not_finite"]), (SAMPLES, "float32", 0))
        self.assertEqual(result["accuracy"], evaluation["accuracy"])
        self.assertNotIn("float32", result)
        rows = self.rows(out)
        self.assertEqual([int(row["sample"]) for row in rows], list(range(SAMPLES)))
        for row in rows:
            probabilities = [float(row[f"p{c}"]) for c in range(10)]
            self.assertAlmostEqual(sum(probabilities), 1.0, places=5)
            self.assertEqual(probabilities.index(max(probabilities)), int(row["class"]))

    def test_writes_the_same_file_on_any_number_of_ranks(self):
        for block in (50, 64, 1000):
            files = {}
            results = {}
            for ranks in (1, 2, 3) if HAS_MPI else (1,):
                out = self.folder / f"p-{block}-{ranks}.npy"
                result = self.infer("--half", "--out", out, "--set", f"data.eval_batch={block}", ranks=ranks)
                files[ranks] = out.read_bytes()
                results[ranks] = {name: result[name] for name in ("samples", "accuracy", "not_finite")}
                results[ranks]["agreement"] = [result["float32"][name]
                                               for name in ("equal_classes", "largest_difference")]
            self.assertEqual(len(set(files.values())), 1, block)
            self.assertTrue(all(result == results[1] for result in results.values()), results)

    def test_half_takes_half_the_bytes_and_says_how_it_agrees(self):
        result = self.infer("--half", "--out", self.folder / "half.csv")
        self.infer("--out", self.folder / "full.csv")
        agreement = result["float32"]
        self.assertEqual(result["dtype"], "float16")
        self.assertEqual(2 * result["weight_bytes"], agreement["weight_bytes"])
        half, full = self.rows(self.folder / "half.csv"), self.rows(self.folder / "full.csv")
        equal = sum(a["class"] == b["class"] for a, b in zip(half, full, strict=True))
        self.assertEqual(agreement["equal_classes"], equal / SAMPLES)
        def number(row, c):
            return array.array("f", [float(row[f"p{c}"])])[0]
        largest = max(abs(number(a, c) - number(b, c)) for a, b in zip(half, full) for c in range(10))
        self.assertEqual(agreement["largest_difference"], largest)
        self.assertGreater(largest, 0)
        self.assertLess(largest, 0.02)
        self.assertGreater(agreement["equal_classes"], 0.98)
        bf16 = self.infer("--half", "--set", "amp.dtype=BF16", "--set", "comm.wire_dtype=BF16")
        self.assertEqual(bf16["dtype"], "bfloat16")

    def test_predicts_training_data_in_their_order_without_augmentation(self):
        first, second = self.folder / "a.jsonl", self.folder / "b.jsonl"
        self.assertEqual(self.infer("--data", "train", "--out", first)["samples"], 1500)
        self.infer("--data", "train", "--out", second, "--set", "seed=7", "--set", "data.augment=unset")
        self.assertEqual(first.read_bytes(), second.read_bytes())
        lines = [json.loads(line) for line in first.read_text(encoding="utf-8").splitlines()]
        self.assertEqual([line["sample"] for line in lines], list(range(1500)))
        self.assertEqual(len(lines[0]["probabilities"]), 10)

    def test_refuses_what_it_cannot_do(self):
        self.assertIn(".csv, .jsonl or .npy", self.infer("--out", self.folder / "p.txt", code=2))
        self.assertIn("no checkpoint", self.infer(code=4, checkpoint=self.folder / "nowhere"))
        (self.folder / "p.csv").mkdir()
        self.assertIn("cannot write", self.infer("--out", self.folder / "p.csv", code=4))
        self.assertIn("evaluation data", self.infer("--set", "data.eval=unset", "--set", "train.eval_every=0", code=2))
        self.assertIn("model/", self.infer("--set", "model.convnet.block[0].channels=8", code=2))
        self.assertEqual(list(self.folder.glob("*.tmp")), [])


if __name__ == "__main__":
    unittest.main()
