# SPDX-License-Identifier: Apache-2.0
"""Tables with blank cells and words, and targets far from zero: the same figures on any number of ranks."""
import json
import subprocess
import unittest

from runs import FP32, LOCKSTEP, RunTest, require_mpi

JOB = """
seed: 5
model { mlp { hidden: 16 } }
data {
  global_batch: 8
  train { csv { files: "train.csv" target_kind: NUMBERS blanks: FILL words: ONE_HOT standardize: true } }
  eval { csv { files: "eval.csv" target_kind: NUMBERS } }
  %s
}
optimizer { adamw { lr: 0.02 } }
train { steps: 60 %s }
"""
SCALE = "normalize_target { mean: 5000 std: 2000 }"
TOWNS = ("Ulm", "Bonn", "Kiel", "NA")


def rows(first, count):
    """Lines of a table: the target follows from the rooms and the town, as far as it is given."""
    lines = []
    for i in range(first, first + count):
        rooms, town = 1 + i * 7 % 5, TOWNS[i * 5 % 4]
        price = 1000 * rooms + {"Ulm": 3000, "Bonn": 500}.get(town, 0) + i * 13 % 50
        lines.append(f"{'' if i % 11 == 0 else rooms},{town},{i * 3 % 17},{price}")
    return lines


class Tables(RunTest):
    def job(self, scale=SCALE, train="", eval_rows=tuple(rows(100, 21))):
        header = "rooms,town,age,price"
        (self.folder / "train.csv").write_text("\n".join([header, *rows(0, 75)]) + "\n", encoding="utf-8")
        (self.folder / "eval.csv").write_text("\n".join([header, *eval_rows]) + "\n", encoding="utf-8")
        path = self.folder / "job.pbtxt"
        path.write_text(JOB % (scale, train), encoding="utf-8")
        return path

    def command_on(self, *arguments):
        done = subprocess.run([LOCKSTEP, *map(str, arguments)], capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_figures_are_the_same_on_any_number_of_ranks(self):
        require_mpi()
        job = self.job()
        reference = self.train("1", *FP32, job=job).summary["eval"]
        self.assertEqual({"samples", "loss", "rmse", "mae", "r2", "baseline"}, set(reference))
        for ranks in (2, 3):
            found = self.train(str(ranks), *FP32, job=job, ranks=ranks).summary["eval"]
            for name in ("rmse", "mae", "r2"):
                self.assertAlmostEqual(found[name] / reference[name], 1, delta=1e-3, msg=name)
            # Of the targets alone: rounding of a float64 sum is all that may differ.
            for name in ("rmse", "mae"):
                self.assertAlmostEqual(found["baseline"][name] / reference["baseline"][name], 1, delta=1e-12, msg=name)

    def test_predictions_and_figures_are_in_the_units_of_the_files(self):
        job = self.job()
        run = self.train("run", *FP32, job=job)
        self.command_on("infer", job, "--checkpoint", run.directory, "--out", self.folder / "p.csv", "--device", "cpu")
        lines = (self.folder / "p.csv").read_text(encoding="utf-8").splitlines()[1:]
        answers = [float(line.split(",")[-1]) for line in lines]
        targets = [float(line.split(",")[-1]) for line in rows(100, 21)]
        errors = [answer - target for answer, target in zip(answers, targets)]
        figures = run.summary["eval"]
        self.assertAlmostEqual(figures["rmse"], (sum(e * e for e in errors) / len(errors)) ** 0.5, delta=0.5)
        self.assertAlmostEqual(figures["mae"], sum(map(abs, errors)) / len(errors), delta=0.5)
        self.assertGreater(figures["r2"], 0.9)
        mean = sum(float(line.split(",")[-1]) for line in rows(0, 75)) / 75
        self.assertAlmostEqual(figures["baseline"]["mae"], sum(abs(t - mean) for t in targets) / 21, delta=1e-3)
        evaluated = self.command_on("eval", job, "--checkpoint", run.directory, "--device", "cpu")
        self.assertRegex(evaluated, r"rmse +[0-9.]+ \(baseline [0-9.]+\)")
        as_json = json.loads(self.command_on("eval", job, "--checkpoint", run.directory, "--device", "cpu",
                                             "--json").splitlines()[-1])
        self.assertAlmostEqual(as_json["r2"], figures["r2"], delta=1e-6)
        self.assertEqual(as_json["baseline"], figures["baseline"])

    def test_a_metric_of_a_regression_ends_a_run_and_names_its_best_weights(self):
        run = self.train("run", *FP32, job=self.job(
            train='eval_every: 5 early_stopping { metric: "eval.rmse" patience: 1 min_delta: 1e9 }'))
        self.assertEqual(10, run.summary["steps"])

    def test_words_that_the_training_data_lack_are_counted_once(self):
        run = self.train("run", *FP32, job=self.job(eval_rows=("1,Rom,3,900", "2,Ulm,4,5000", "2,Rom,4,2000")))
        remark = 'column "town": 2 of 3 cells hold categories that the training data lack'
        self.assertEqual(1, run.output.count(remark), run.output)


if __name__ == "__main__":
    unittest.main()
