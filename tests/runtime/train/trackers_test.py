# SPDX-License-Identifier: Apache-2.0
"""A command of the user's that is told of a run while it trains."""
import json
import os
import shlex
import sys
import unittest
from pathlib import Path

from runs import RANK_COUNTS, RunTest, faults

EXAMPLES = Path(__file__).resolve().parents[3] / "examples/trackers"
SHORT = ("train.steps=20", "schedule.cosine.warmup_steps=5", "train.eval_every=10", "checkpoint.every_steps=10")

# What the example calls of MLflow, written down.
MLFLOW = """
import contextlib, json, os
def note(*call):
    with open(os.environ["CALLS"], "a") as calls:
        calls.write(json.dumps(call) + "\\n")
def set_experiment(name): note("set_experiment", name)
@contextlib.contextmanager
def start_run(run_name):
    note("start_run", run_name)
    yield
    note("end_run")
def log_artifact(path): note("log_artifact", os.path.exists(path))
def log_metrics(metrics, step): note("log_metrics", metrics, step)
def set_tag(name, value): note("set_tag", name, value)
"""


class Trackers(RunTest):
    def told(self, name, *settings, command="cat >> {lines}", **options):
        lines = self.folder / (name + ".lines")
        run = self.train(name, *settings, options=("--on-event", command.format(lines=shlex.quote(str(lines)))), **options)
        return run, lines.read_text(encoding="utf-8") if lines.exists() else ""

    def test_a_command_gets_each_line_of_rank_0(self):
        for ranks in RANK_COUNTS:
            with self.subTest(ranks=ranks):
                run, lines = self.told(f"run{ranks}", *SHORT, ranks=ranks)
                self.assertEqual(lines, (run.directory / "metrics.jsonl").read_text(encoding="utf-8"))
                self.assertEqual(json.loads(lines.splitlines()[-1])["event"], "done")

    def test_it_gets_the_skipped_step_and_the_failure_too(self):
        run, lines = self.told("run", *SHORT, "amp.loss_scale.max_consecutive_skips=2", faults("overflow", "step:3", "overflow", "step:4"), code=5)
        self.assertEqual(lines, (run.directory / "metrics.jsonl").read_text(encoding="utf-8"))
        self.assertEqual(json.loads(lines.splitlines()[-1])["event"], "failed")

    def test_training_goes_on_without_a_command_that_dies(self):
        reference = self.train("reference", *SHORT)
        for name, command in (("dies", "head -n 1 > {lines}; exit 3"), ("missing", "no-such-command-at-all")):
            with self.subTest(name):
                run, _ = self.told(name, *SHORT, command=command)
                self.assertEqual(run.digest, reference.digest)
                self.assertEqual(run.output.count("the command of --on-event"), 1, run.output)

    def test_no_file_can_name_a_command(self):
        run = self.start("run", *SHORT, "train.on_event=true").finish()
        self.assertEqual(run.code, 2, run.output)
        self.assertIn("on_event", run.output)

    def test_the_example_for_mlflow_logs_steps_and_evaluations(self):
        (self.folder / "mlflow.py").write_text(MLFLOW, encoding="utf-8")
        calls = self.folder / "calls"
        command = " ".join(shlex.quote(str(word)) for word in
                           ("env", f"PYTHONPATH={self.folder}", f"CALLS={calls}", sys.executable, EXAMPLES / "mlflow_log.py",
                            self.folder / "run"))
        run = self.train("run", *SHORT, options=("--on-event", command))
        noted = [json.loads(line) for line in calls.read_text(encoding="utf-8").splitlines()]
        self.assertEqual(noted[0:3], [["set_experiment", "lockstep"], ["start_run", "run"], ["log_artifact", True]], run.output)
        self.assertEqual(noted[-1], ["end_run"])
        metrics = [call for call in noted if call[0] == "log_metrics"]
        losses = {step: values["loss"] for _, values, step in metrics if "loss" in values}
        self.assertEqual([losses[line["step"]] for line in run.steps], run.column("loss"))
        self.assertEqual(sum("eval.accuracy" in values for _, values, _ in metrics), 2)
        self.assertIn(["set_tag", "done", 20], noted)


if __name__ == "__main__":
    unittest.main()
