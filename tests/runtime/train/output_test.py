# SPDX-License-Identifier: Apache-2.0
"""Nobody reads what a run prints: a stopped terminal, a log collector that hangs. The run does not wait."""
import json
import os
import resource
import signal
import subprocess
import time
import unittest

from runs import RANK_COUNTS, TALKATIVE, RunTest


class UnreadOutput(RunTest):
    def start_unread(self, name, *settings, ranks=1):
        command = self.command(name, *settings) + (["--nproc", str(ranks)] if ranks > 1 else [])
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        process = subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        os.close(writing)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        return process

    def test_a_run_ends_all_the_same(self):
        for ranks in RANK_COUNTS:
            process = self.start_unread(f"run-{ranks}", *TALKATIVE, ranks=ranks)
            error = process.stderr.read().decode()
            self.assertEqual(process.wait(), 0, error)
            self.assertIn("lines of output were dropped: nobody read them", error)
            lines = (self.folder / f"run-{ranks}" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
            self.assertEqual(sum('"event"' not in line for line in lines), 1000)

    def test_a_request_to_stop_is_obeyed(self):
        for ranks in RANK_COUNTS:
            settings = [*TALKATIVE, "train.steps=10000000", "checkpoint.every_steps=500"]
            process = self.start_unread(f"run-{ranks}", *settings, ranks=ranks)
            while not (self.folder / f"run-{ranks}" / "checkpoints" / "step-00001000").exists():
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            error = process.stderr.read().decode()
            self.assertEqual(process.wait(), 75, error)


    def test_a_request_to_stop_does_not_disturb_the_end_of_a_run(self):
        for ranks in RANK_COUNTS:
            process = self.start_unread(f"run-{ranks}", *TALKATIVE, ranks=ranks)
            summary = self.folder / f"run-{ranks}" / "summary.json"
            while not summary.exists():
                self.assertIsNone(process.poll())
                time.sleep(0.001)
            # The run is over, and waits a moment for somebody to read.
            time.sleep(0.2)
            process.send_signal(signal.SIGHUP if ranks == 1 else signal.SIGTERM)
            error = process.stderr.read().decode()
            self.assertEqual(process.wait(), 0, error)
            self.assertIn("lines of output were dropped: nobody read them", error)


class Records(RunTest):
    def test_training_goes_on_where_the_job_cannot_be_written(self):
        (self.folder / "run" / "job.pbtxt").mkdir(parents=True)
        run = self.train("run", "train.steps=2")
        self.assertRegex(run.output, r"cannot write \S+/run/job\.pbtxt: .*; training goes on")
        self.assertEqual(run.summary["status"], "done")


class FullDisk(RunTest):
    # A limit on the size of a file refuses the metrics, as a full disk would; the weights of this model are smaller.
    SETTINGS = ("model={ mlp { hidden: [1] } }", "train.steps=400", "train.eval_every=0", "checkpoint.every_steps=0")

    def test_training_goes_on_without_its_metrics(self):
        whole = self.train("whole", *self.SETTINGS)
        self.assertGreater((whole.directory / "metrics.jsonl").stat().st_size, 60_000)
        self.assertNotIn("lost_output", whole.summary)
        run = self.train("run", *self.SETTINGS, limit=(resource.RLIMIT_FSIZE, 50_000))
        self.assertEqual((run.summary["status"], run.digest), ("done", whole.digest))
        text = (run.directory / "metrics.jsonl").read_text(encoding="utf-8")
        lines = text.splitlines()[:-1]  # the last one is cut
        self.assertEqual([json.loads(line)["step"] for line in lines], list(range(1, len(lines) + 1)))
        # The cut line is one that is not written; the summary comes before the last line.
        self.assertEqual(run.summary["lost_output"]["metrics.jsonl"], len(whole.lines) - 1 - len(lines))
        self.assertEqual(run.output.count("metrics.jsonl: File too large; training goes on"), 1, run.output)
        self.assertRegex(run.output, r"metrics\.jsonl: \d+ entries are not written")

    def test_a_resume_completes_what_was_cut(self):
        self.train("run", *self.SETTINGS, limit=(resource.RLIMIT_FSIZE, 50_000))
        run = self.train("run", *self.SETTINGS, "train.steps=420")
        steps = run.column("step")
        self.assertEqual(steps[-20:], list(range(401, 421)))
        self.assertEqual(len(steps), len(set(steps)))


if __name__ == "__main__":
    unittest.main()
