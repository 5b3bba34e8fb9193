# SPDX-License-Identifier: Apache-2.0
"""Tables whose columns of many words are embedded: trained, resumed, carried away, predicted and exported."""
import csv
import io
import json
import shutil
import subprocess
import unittest

from runs import FP32, HAS_MPI, LOCKSTEP, CarriedTest, RunTest, read_tensors, require_mpi

JOB = """
seed: 5
model { mlp { hidden: 16 } }
data {
  global_batch: 8
  train { csv { files: "data/train.csv" target_kind: NUMBERS blanks: FILL words: ONE_HOT standardize: true one_hot_up_to: 4 } }
  %s
  normalize_target { mean: 5000 std: 2000 }
}
optimizer { adamw { lr: 0.02 } }
train { steps: 60 }
"""
EVAL = 'eval { csv { files: "data/eval.csv" target_kind: NUMBERS } }'
STREETS = [f"street {i}" for i in range(20)]


def rows(first, count, rooms=True):
    """Lines of a table: the target follows from the rooms and the street; some streets are not known."""
    lines = []
    for i in range(first, first + count):
        street = i * 7 % 20
        price = 1000 * (1 + i % 3) * rooms + 300 * street
        lines.append(f"{str(1 + i % 3) + ',' if rooms else ''}{'' if i % 17 == 0 else STREETS[street]},{price}")
    return lines


class EmbeddedTable:
    """Writes the table and its job."""

    def write(self, folder, evaluation=EVAL):
        (folder / "data").mkdir(parents=True, exist_ok=True)
        for name, lines in (("train", rows(0, 120)), ("eval", rows(200, 21))):
            (folder / "data" / f"{name}.csv").write_text("\n".join(["rooms,street,price", *lines]) + "\n", encoding="utf-8")
        path = folder / "job.pbtxt"
        path.write_text(JOB % evaluation, encoding="utf-8")
        return path


class Trained(EmbeddedTable, RunTest):
    def test_alike_on_any_number_of_ranks(self):
        require_mpi()
        job = self.write(self.folder)
        for level in (FP32, ("amp.opt_level=O2", "amp.dtype=BF16", "comm.wire_dtype=FP32")):
            reference = self.train(f"1{level[0][-2:]}", *level, job=job).summary["eval"]
            for ranks in (2, 3):
                found = self.train(f"{ranks}{level[0][-2:]}", *level, job=job, ranks=ranks).summary["eval"]
                self.assertAlmostEqual(found["rmse"] / reference["rmse"], 1, delta=1e-3 if level == FP32 else 0.2)
        self.assertGreater(reference["r2"], 0.8)

    def test_a_resumed_run_ends_as_the_uninterrupted_one(self):
        job = self.write(self.folder)
        whole = self.train("whole", *FP32, job=job)
        self.train("cut", *FP32, "train.steps=25", job=job)
        self.assertEqual(self.train("cut", *FP32, job=job).digest, whole.digest)

    def test_evaluation_data_may_be_held_out(self):
        run = self.train("run", *FP32, job=self.write(self.folder, "eval_share: 0.2"))
        self.assertGreater(run.summary["eval"]["samples"], 5)

    def test_another_model_is_refused_with_the_way_out(self):
        job = self.write(self.folder)
        output = self.train("run", "model={ convnet { block { channels: 4 } } }", job=job, code=2).output
        self.assertIn("convnet takes one input, and the samples of data.train have 2", output)
        self.assertIn("one_hot_up_to: 1024", output)

    def test_the_plan_tells_of_the_tokens(self):
        job = self.write(self.folder)
        done = subprocess.run([LOCKSTEP, "validate", job, "--json"], capture_output=True, text=True, check=True)
        plan = json.loads(done.stdout)["plan"]
        self.assertEqual(plan["train"]["more_inputs"], [{"sample_shape": [1], "vocabulary": 21}])
        # The embedding, 21 by 11; then the rooms and it.
        self.assertEqual(plan["parameters"], 21 * 11 + 12 * 16 + 16 + 16 + 1)


class Carried(EmbeddedTable, CarriedTest):
    NEW = "street,note,rooms\nstreet 3,x,2\n,y,1\nelsewhere,z,3\n"

    def run_alone(self):
        self.write(self.home)
        return self.trained((self.home / "job.pbtxt").read_text(encoding="utf-8"), *FP32)

    def predictions(self, *arguments):
        return [row["prediction"] for row in csv.DictReader(io.StringIO(self.call("infer", *arguments)))]

    def test_a_table_is_predicted_by_the_run_alone(self):
        run = self.run_alone()
        (self.away / "new.csv").write_text(self.NEW, encoding="utf-8")
        found = self.predictions(run, "--input", "new.csv")
        self.assertAlmostEqual(float(found[0]), 2900, delta=600)
        if HAS_MPI:
            self.assertEqual(found, self.predictions(run, "--input", "new.csv", "--nproc", "2"))
        self.call("export", run, "--bundle", "run.lockstep")
        self.assertEqual(found, self.predictions("run.lockstep", "--input", "new.csv"))
        done = subprocess.run([LOCKSTEP, "infer", run, "--input", "-"], input=self.NEW, capture_output=True, text=True,
                              check=True)
        for given, expected in zip(csv.DictReader(io.StringIO(done.stdout)), found, strict=True):
            self.assertAlmostEqual(float(given["prediction"]), float(expected), delta=0.01)
        # A word that is not known counts as none of the known ones, and so does a blank cell.
        told = subprocess.run([LOCKSTEP, "infer", run, "--input", "new.csv"], capture_output=True, text=True, check=True,
                              cwd=self.away)
        self.assertIn('column "street": 1 of 3 cells hold categories that the training data lack', told.stderr + told.stdout)

    def test_data_are_evaluated_and_weights_exported_by_the_run_alone(self):
        self.write(self.home)
        shutil.copy(self.home / "data" / "eval.csv", self.away / "eval.csv")
        run = self.trained((self.home / "job.pbtxt").read_text(encoding="utf-8"), *FP32)
        figures = json.loads(self.call("eval", run, "--set", f"data.eval.csv.files={self.away / 'eval.csv'}",
                                       "--json").splitlines()[-1])
        summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
        self.assertAlmostEqual(figures["rmse"], summary["eval"]["rmse"], delta=0.01)
        self.call("export", run, "--out", "weights.safetensors")
        self.assertEqual(len(read_tensors(self.away / "weights.safetensors")["embedding0.weight"]), 21 * 11)
        self.call("export", run, "--onnx", "graph.onnx")
        self.assertIn(b"input_2", (self.away / "graph.onnx").read_bytes())


class WordsAlone(CarriedTest):
    def test_a_table_without_a_number_is_learned(self):
        lines = "\n".join(["street,price", *rows(0, 120, rooms=False)]) + "\n"
        (self.home / "data" / "train.csv").write_text(lines, encoding="utf-8")
        run = self.trained(JOB % "", *FP32)
        (self.away / "new.csv").write_text("street\nstreet 3\nstreet 15\n", encoding="utf-8")
        found = list(csv.DictReader(io.StringIO(self.call("infer", run, "--input", "new.csv"))))
        self.assertLess(float(found[0]["prediction"]) + 2000, float(found[1]["prediction"]))
        self.call("export", run, "--onnx", "graph.onnx")


if __name__ == "__main__":
    unittest.main()
