# SPDX-License-Identifier: Apache-2.0
"""lockstep train --trace: one file with what all ranks do in some steps."""
import json
import subprocess
import sys
import time
import unittest

from runs import DIGITS, FP32, LOCKSTEP, RANK_COUNTS, RunTest, mpirun_of, require_mpi


class Trace(RunTest):
    def traced(self, steps, *settings, ranks=1, options=()):
        run = self.train(f"run-{ranks}", "train.eval_every=0", *settings, ranks=ranks,
                         options=("--trace", steps, *options))
        return json.loads((run.directory / "trace.json").read_text(encoding="utf-8"))

    @staticmethod
    def row(event):
        """A rank, and the number of its thread: 0 is the one that trains."""
        return event["pid"], event["tid"] % 1000

    def rows(self, trace):
        """The events of each rank's threads, by their begin, longest first."""
        rows = {}
        for event in trace["traceEvents"]:
            if event["ph"] == "X":
                rows.setdefault(self.row(event), []).append(event)
        return {row: sorted(events, key=lambda event: (event["ts"], -event["dur"])) for row, events in rows.items()}

    def names(self, trace, what):
        return {self.row(event): event["args"]["name"] for event in trace["traceEvents"]
                if event["ph"] == "M" and event["name"] == what}

    def assert_nested(self, events):
        open_ends = []
        for event in events:
            end = event["ts"] + event["dur"]
            while open_ends and open_ends[-1] <= event["ts"] + 1e-3:
                open_ends.pop()
            for enclosing in open_ends:
                self.assertLessEqual(end, enclosing + 1e-3, event)
            open_ends.append(end)

    def buckets(self, rows, rank):
        """A rank's reductions of buckets: on a stream's thread, or on the one that trains while it waits for them."""
        waits = [event for event in rows[rank, 0] if event["name"] == "wait for a reduction"]
        found = [event for (of, thread), events in rows.items() if of == rank for event in events
                 if event["name"] == "all_reduce" and
                 (thread > 0 or any(0 <= event["ts"] - wait["ts"] <= wait["dur"] for wait in waits))]
        return sorted(found, key=lambda event: event["ts"])

    def assert_met(self, rows, errors):
        """No bucket is reduced on any rank before all have brought theirs."""
        lanes = [self.buckets(rows, rank) for rank in range(len(errors))]
        self.assertEqual([len(lane) for lane in lanes], [3] * len(errors))
        for together in zip(*lanes):
            last = max(event["ts"] for event in together)
            for event in together:
                self.assertGreaterEqual(event["ts"] + event["dur"] + sum(errors), last)

    def test_clocks_that_are_100_seconds_apart_are_brought_together(self):
        require_mpi()
        later = ["unshare", "--time", "--monotonic", "100", "--"]
        clock = [sys.executable, "-c", "import time; print(time.monotonic())"]
        told = subprocess.run(later + clock, capture_output=True, text=True, check=False)
        if told.returncode != 0 or float(told.stdout) < time.monotonic() + 50:
            self.skipTest("no time namespaces here: " + told.stderr)
        train = self.command("run", "train.steps=6", "train.eval_every=0") + ["--trace", "3:5"]
        subprocess.run(mpirun_of(train, later + train), capture_output=True, check=True, cwd=self.folder)
        trace = json.loads((self.folder / "run/trace.json").read_text(encoding="utf-8"))
        self.assert_met(self.rows(trace), trace["metadata"]["clock_error_us"])

    def test_events_nest_and_no_collective_ends_before_its_last_arrival(self):
        for ranks in RANK_COUNTS:
            trace = self.traced("3:5", "train.steps=6", ranks=ranks)
            rows = self.rows(trace)
            self.assertEqual({rank for rank, _ in rows}, set(range(ranks)))
            self.assertEqual({name for (_, thread), name in self.names(trace, "thread_name").items() if thread == 0},
                             {"train"})
            for events in rows.values():
                self.assert_nested(events)
            for rank in range(ranks):
                phases = [event["name"] for event in rows[rank, 0] if event["cat"] == "phase"]
                for phase in ("forward", "backward", "optimizer"):
                    self.assertEqual(phases.count(phase), 3)
                self.assertEqual(sum(event["name"] == "forward" for event in rows[rank, 0]), 3, "a phase is one event")
                counts = [event["name"] for event in rows[rank, 0]]
                self.assertEqual(counts.count("conv"), counts.count("conv backward"))
            # Perfetto showed rank 1's threads 0 and 1 as one row.
            threads = {(event["pid"], event["tid"]) for event in trace["traceEvents"]}
            self.assertEqual(len({thread for _, thread in threads} - {0}), len(threads))
            errors = trace["metadata"]["clock_error_us"]
            self.assertEqual((len(errors), errors[0]), (ranks, 0))
            if ranks > 1:
                self.assert_met(rows, errors)

    def test_a_run_that_ends_within_the_steps_writes_those_that_it_trained(self):
        trace = self.traced("2:9", "train.steps=3")
        phases = [event["name"] for event in self.rows(trace)[0, 0] if event["cat"] == "phase"]
        self.assertEqual(phases.count("forward"), 2)

    def test_a_run_that_goes_on_behind_the_steps_says_so(self):
        self.train("run", "train.steps=4", "train.eval_every=0")
        run = self.train("run", "train.steps=5", "train.eval_every=0", options=("--trace", "2:4"))
        self.assertIn("--trace ends with step 4, and the run goes on after step 4: nothing is traced", run.output)
        self.assertFalse((run.directory / "trace.json").exists())

    def test_a_run_that_goes_on_within_the_steps_traces_the_rest(self):
        self.train("run", "train.steps=4", "train.eval_every=0")
        run = self.train("run", "train.steps=6", "train.eval_every=0", options=("--trace", "2:6"))
        events = json.loads((run.directory / "trace.json").read_text())["traceEvents"]
        self.assertEqual(sum(event["name"] == "backward" and event.get("cat") == "phase" for event in events), 2)

    def test_training_is_the_same_to_the_bit(self):
        plain = self.train("plain", "train.steps=6", *FP32)
        traced = self.train("traced", "train.steps=6", *FP32, options=("--trace", "2:4"))
        self.assertEqual(traced.digest, plain.digest)

    def test_wrong_steps_are_a_sentence(self):
        for steps in ("5", "0:2", "3:2", "a:b", "1:2x", "1:101", ""):
            told = subprocess.run([LOCKSTEP, "train", str(DIGITS), "--trace", steps], capture_output=True, text=True,
                                  check=False, cwd=self.folder)
            self.assertEqual(told.returncode, 2, told.stderr)
            self.assertIn("--trace", told.stderr)
            self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
