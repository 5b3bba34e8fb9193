# SPDX-License-Identifier: Apache-2.0
"""A rank that is slower than the others is named, and so is its end."""
import json
import socket
import statistics
import unittest

from runs import RunTest, faults

# Far longer than a step; a rank that waits so long for a core is rare even on a busy machine.
DELAY = 60


def delays(steps, *ranks):
    return faults(*(text for step in steps for rank in ranks
                    for text in ("delay", f"step:{step} rank:{rank} milliseconds:{DELAY} phase:FORWARD")))


class Stragglers(RunTest):
    def events(self, run):
        return [line for line in run.lines if line.get("event") in ("straggler", "straggler_ended")]

    def test_a_slow_rank_is_named(self):
        for ranks, slow in ((2, 1), (2, 0), (3, 1)):
            # It begins slow and becomes as fast as the others, which are slowed down alike then.
            everyone = range(ranks)
            setting = delays(range(1, 31), slow)[:-1] + ", " + delays(range(31, 61), *everyone)[len("fault=["):]
            run = self.train(f"run-{ranks}-{slow}", "train.steps=60", "train.eval_every=0", setting, ranks=ranks)
            begins, ends = self.events(run)
            self.assertEqual((begins["event"], begins["rank"], begins["host"]), ("straggler", slow, socket.gethostname()))
            self.assertTrue(20 <= begins["step"] <= 30, begins)
            self.assertGreater(begins["factor"], 1.3)
            self.assertEqual((ends["event"], ends["rank"]), ("straggler_ended", slow))
            self.assertTrue(30 < ends["step"] <= 60, ends)
            self.assertRegex(run.output, rf"step {begins['step']}: rank {slow} on \S+ is slow: \d")
            self.assertRegex(run.output, rf"step {ends['step']}: rank {slow} on \S+ is no longer slow: \d")
            for rank in everyone:
                events = json.loads((run.directory / f"last_events/rank{rank}.json").read_text(encoding="utf-8"))
                self.assertRegex(events["metadata"]["reason"], rf"^rank {slow} on \S+ is slow: \d")
                steps = [event["args"]["step"] for event in events["traceEvents"] if event["name"] == "step"]
                self.assertEqual(steps, list(range(1, begins["step"] + 1)))
            # The others wait for it; on a busy machine not in every step.
            for rank in set(everyone) - {slow}:
                self.assertGreater(statistics.median(line["wait_ms_of_ranks"][rank] for line in run.steps[5:30]),
                                   DELAY / 2)
            self.assertEqual({len(line["wait_ms_of_ranks"]) for line in run.steps}, {ranks})

    def test_ranks_that_are_alike_are_not(self):
        run = self.train("run", "train.steps=40", "train.eval_every=0", delays(range(1, 41), 0, 1), ranks=2)
        self.assertEqual(self.events(run), [])

    def test_a_lone_rank_waits_for_nobody(self):
        self.assertNotIn("wait_ms_of_ranks", self.train("run", "train.steps=2").step(1))


if __name__ == "__main__":
    unittest.main()
