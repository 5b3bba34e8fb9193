# SPDX-License-Identifier: Apache-2.0
"""Following a run from another terminal."""
import json
import re
import signal
import subprocess
import time
import unittest

from runs import LOCKSTEP, RunTest
from screen import Screen
from terminal_test import BAR, ESCAPES, Window

LONG = ("train.steps=1000000", "schedule.cosine.warmup_steps=5", "train.eval_every=0", "checkpoint.every_steps=20", "checkpoint.keep=1")
SHORT = ("train.steps=20", "schedule.cosine.warmup_steps=5", "train.eval_every=10", "checkpoint.every_steps=10")
CLOCK = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  "


class Watched(RunTest):
    def watch(self, name, *options):
        watcher = subprocess.Popen([LOCKSTEP, "watch", str(self.folder / name), *options], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, encoding="utf-8")
        self.addCleanup(lambda: (watcher.kill(), watcher.wait(), watcher.stdout.close()))
        return watcher

    def stop(self, run):
        run.process.send_signal(signal.SIGTERM)
        return run.finish()

    def test_a_run_is_followed_to_its_end_and_ends_with_its_exit_code(self):
        run = self.start("run", *LONG)
        self.assertTrue(run.wait_for_step(20))
        watcher = self.watch("run", "--every", "0.1")
        seen = [watcher.stdout.readline() for _ in range(3)]
        self.assertEqual(self.stop(run).code, 75)
        rest = watcher.stdout.read()
        self.assertEqual(watcher.wait(), 75)
        for line in seen:
            self.assertRegex(line, "^" + CLOCK + r"step \d+/1000000  loss \S+  lr \S+  scale \S+  \d+ samples/s  elapsed \d+:\d\d  eta ")
        self.assertRegex(rest, CLOCK + r"stopped after step \d+, as asked\n$")

    def test_a_run_that_has_ended_is_told_at_once(self):
        self.train("run", *SHORT)
        watcher = self.watch("run", "--wait")
        self.assertRegex(watcher.stdout.read(), "^" + CLOCK + "done after step 20\n$")
        self.assertEqual(watcher.wait(), 0)

    def test_it_waits_for_a_run_and_goes_on_with_one_that_is_resumed(self):
        watcher = self.watch("run", "--wait", "--every", "0.1")
        self.assertRegex(watcher.stdout.readline(), "^waiting for .*run\n$")
        run = self.start("run", *LONG)
        self.assertTrue(run.wait_for_step(20))
        stopped = self.stop(run).summary["step"]
        run = self.train("run", *LONG[1:], f"train.steps={stopped + 5}")
        text = watcher.stdout.read()
        self.assertEqual(watcher.wait(), 0, text)
        events = re.findall(f"^{CLOCK}((?:stopped|resumed|done) .*)$", text, re.MULTILINE)
        self.assertEqual([event.split(":")[0] for event in events],
                         [f"stopped after step {stopped}, as asked", f"resumed behind step {stopped}", f"done after step {stopped + 5}"])

    def test_a_run_that_was_killed_is_not_waited_for(self):
        self.train("run", *SHORT)
        lines = (self.folder / "run/metrics.jsonl").read_text().splitlines()
        steps = [json.loads(line) for line in lines if '"event"' not in line]
        for line in steps:
            line["time"] -= 1000  # longer ago than any run is silent
        (self.folder / "run/metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in steps))
        (self.folder / "run/summary.json").unlink()
        watcher = self.watch("run")
        self.assertIn("the run is lost: it has told of no end, and no process trains there", watcher.stdout.read())
        self.assertEqual(watcher.wait(), 7)

    def test_a_run_that_is_not_there_is_refused(self):
        watcher = self.watch("nothing")
        text = watcher.stdout.read()
        self.assertEqual(watcher.wait(), 4)
        self.assertIn("there is no run", text)

    def test_its_live_line_fits_a_window_that_shrinks(self):
        run = self.start("run", *LONG)
        self.assertTrue(run.wait_for_step(20))
        window = Window([LOCKSTEP, "watch", str(self.folder / "run")], self.folder / "run", 160)
        self.addCleanup(window.process.kill)
        self.assertTrue(window.wait_for(lambda seen: any(len(bar) > 60 for bar in seen.bars)), window.text)
        window.resize(50)
        shown = len(window.text)
        self.assertTrue(window.wait_for(lambda seen: any(20 < len(bar) < 50 for bar in seen.bars[1:-1])), window.text)
        text = window.text
        self.assertEqual(self.stop(run).code, 75)
        self.assertEqual(window.finish().code, 75)
        screen = Screen(160)
        screen.feed(text[:shown])
        screen.resize(50)
        screen.feed(text[shown:text.rindex("\x1b[")])
        self.assertEqual(len([line for line in screen.lines if line]), 1, screen.lines)
        self.assertRegex(screen.lines[0], BAR)
        self.assertIn("stopped after step", ESCAPES.sub("", window.text))

    def test_ctrl_c_ends_the_watching_alone(self):
        run = self.start("run", *LONG)
        self.assertTrue(run.wait_for_step(20))
        window = Window([LOCKSTEP, "watch", str(self.folder / "run")], self.folder / "run", 80)
        self.addCleanup(window.process.kill)
        self.assertTrue(window.wait_for(lambda seen: seen.bars), window.text)
        window.type("\x03")
        self.assertEqual(window.finish().code, 130)
        self.assertIsNone(run.process.poll())
        self.assertEqual(self.stop(run).code, 75)


if __name__ == "__main__":
    unittest.main()
