# SPDX-License-Identifier: Apache-2.0
"""What a person sees of a run in a window of any width, and what a program reads that asks for JSON."""
import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
import unittest

from runs import FP32, LOCKSTEP, RANK_COUNTS, Run, RunTest, faults, require_mpi
from screen import Screen

SHORT = ("train.steps=40", "schedule.cosine.warmup_steps=5", "train.eval_every=20", "checkpoint.every_steps=10")
LONG = ("train.steps=1000000", "schedule.cosine.warmup_steps=5")
BAR = re.compile(r"^ *\d+ %")
ESCAPES = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]")
COLORS = re.compile(r"\x1b\[[0-9;]*m")


class Window:
    """A run in a terminal window of its own."""

    def __init__(self, command, directory, columns, **variables):
        self.directory = directory
        self.master, slave = pty.openpty()
        self.resize(columns)
        environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
        environment |= {"TERM": "xterm", **variables}

        def own_the_terminal():
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment,
                                        start_new_session=True, preexec_fn=own_the_terminal)
        os.close(slave)
        self.text = ""
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def resize(self, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def read(self):
        with contextlib.suppress(OSError):  # the last process at the other end has gone
            while data := os.read(self.master, 4096):
                with self.changed:
                    self.text += data.decode()
                    self.changed.notify_all()
        with self.changed:
            self.master_closed = True
            self.changed.notify_all()

    master_closed = False

    def wait_for(self, found):
        """Waits until what is on the screen satisfies `found`; false where the run ends before."""
        with self.changed:
            self.changed.wait_for(lambda: self.master_closed or found(self))
            return bool(found(self))

    def type(self, text):
        os.write(self.master, text.encode())

    def finish(self):
        code = self.process.wait()
        self.reader.join()
        os.close(self.master)
        return Run(self.directory, code, self.text)

    @property
    def drawn(self):
        """Every state of every line."""
        return [ESCAPES.sub("", piece) for line in self.text.split("\n") for piece in line.split("\r") if piece]

    @property
    def bars(self):
        return [piece for piece in self.drawn if BAR.match(piece)]


class Seen(RunTest):
    def window(self, *settings, columns=100, ranks=1, options=(), variables=None, resume="auto"):
        command = self.command("run", *settings, resume=resume) + list(options)
        if ranks > 1:
            require_mpi()
            command += ["--nproc", str(ranks)]
        window = Window(command, self.folder / "run", columns, **(variables or {}))
        self.addCleanup(window.process.kill)
        return window

    def watch(self, *settings, code=0, **where):
        window = self.window(*settings, **where)
        run = window.finish()
        self.assertEqual(run.code, code, window.text)
        return window

    def test_the_progress_line_fits_any_window(self):
        for ranks in RANK_COUNTS:
            for columns in (3, 20, 50, 200):
                with self.subTest(ranks=ranks, columns=columns):
                    window = self.watch(*SHORT, ranks=ranks, columns=columns, resume="never")
                    if columns > 5:
                        self.assertTrue(window.bars[-1].startswith("100 %"), window.bars)
                    for bar in window.bars:
                        self.assertLess(len(bar), columns, bar)
                    if columns == 200:
                        self.assertRegex(window.bars[-1], r"\[#+\]  40/40  \d+:\d\d  eta 0:00  loss \S+  \S+ samples/s")

    def test_it_follows_the_window(self):
        for ranks in RANK_COUNTS:
            with self.subTest(ranks=ranks):
                window = self.window(*LONG, columns=100, ranks=ranks, resume="never")
                self.assertTrue(window.wait_for(lambda seen: any(len(bar) > 50 for bar in seen.bars)), window.text)
                window.resize(30)
                self.assertTrue(window.wait_for(lambda seen: any(len(bar) < 30 for bar in seen.bars[1:-1])), window.text)
                window.type("\x03")
                self.assertEqual(window.finish().code, 75)

    def test_a_smaller_window_shows_no_piece_of_an_earlier_bar(self):
        for ranks in RANK_COUNTS:
            window = self.window(*LONG, columns=100, ranks=ranks, resume="never")
            self.assertTrue(window.wait_for(lambda seen: any(len(bar) > 50 for bar in seen.bars[1:-1])), window.text)
            window.resize(30)
            shown = len(window.text)
            self.assertTrue(window.wait_for(lambda seen: any(len(bar) < 30 for bar in seen.bars[1:-1])), window.text)
            text = window.text
            window.process.terminate()
            window.finish()
            # The window may have been smaller for some time when the run gets to know it.
            for known_late, resized in ((False, shown), (True, text.index(" %"))):
                with self.subTest(ranks=ranks, known_late=known_late):
                    screen = Screen(100)
                    screen.feed(text[:resized])
                    screen.resize(30)
                    screen.feed(text[resized:text.rindex("\x1b[")])
                    printed = [line.rpartition("\r")[2] for line in
                               ESCAPES.sub("", text).replace("\r\n", "\n").split("\n")[:-1]]
                    others = [line for line in screen.lines if line not in [line.rstrip() for line in printed]]
                    self.assertEqual(len(others), 1, screen.lines)
                    self.assertRegex(others[0], BAR)
                    self.assertLess(len(others[0]), 30)

    def test_the_first_ctrl_c_is_acknowledged_and_saves(self):
        for ranks in RANK_COUNTS:
            with self.subTest(ranks=ranks):
                window = self.window(*LONG, ranks=ranks, resume="never")
                window.wait_for(lambda seen: seen.bars)
                window.type("\x03")
                run = window.finish()
                self.assertEqual(run.code, 75, window.text)
                lines = ESCAPES.sub("", window.text).replace("\r\n", "\n").split("\n")
                self.assertIn("stopping after this step and saving; Ctrl-C again to end at once",
                              [line.rpartition("\r")[2] for line in lines])
                self.assertEqual(run.summary["status"], "preempted")
                self.assertEqual(run.checkpoints[-1], run.checkpoint(run.summary["step"]))

    def test_the_second_ctrl_c_ends_at_once(self):
        for ranks in RANK_COUNTS:
            with self.subTest(ranks=ranks):
                slow = faults("delay", "step:5 rank:0 milliseconds:50000 phase:FORWARD")
                window = self.window(*LONG, "checkpoint.every_steps=4", slow, ranks=ranks,
                                     resume="never")
                window.wait_for(lambda seen: "saved at step 4" in seen.text)
                window.type("\x03")
                self.assertTrue(window.wait_for(lambda seen: "stopping after this step" in seen.text), window.text)
                window.type("\x03")
                run = window.finish()
                self.assertEqual(run.code, 75, window.text)
                self.assertEqual(run.checkpoints[-1], run.checkpoint(4))

    def test_lines_stand_above_the_bar(self):
        window = self.watch(*SHORT, faults("overflow", "step:5 rank:1"), ranks=2, columns=120)
        lines = [line.rpartition("\r")[2] for line in ESCAPES.sub("", window.text).replace("\r\n", "\n").split("\n")]
        for expected in (r"^step 5 skipped: inf or NaN in the gradient of \S+ on rank 1; loss scale 65536, now 32768$",
                         r"^saved at step 10 in \d+ ms: \S+step-00000010$",
                         r"^eval at step 20: loss \S+, accuracy \S+ %.*, top5_accuracy \S+ %$",
                         r"^done +40 steps in \d+:\d\d, \S+ samples/s, 1 skipped$",
                         r"^next +lockstep eval \S+/run$", r"^ +lockstep infer \S+/run --input PATH...$"):
            self.assertTrue(any(re.match(expected, line) for line in lines), f"{expected}\n{lines}")
        self.assertRegex(window.bars[-1], "1 skipped")
        header = "\n".join(lines[:8])
        for expected in (r"job +digits_convnet", r"model +convnet, [0-9,]+ parameters",
                         r"data +1,500 samples of \S.*, 10 classes; 297 to evaluate", r"ranks +2 x 1 thread\n",
                         r"device +cpu", r"precision +O1, FP16, loss scale 65536 at first", r"run +\S+/run"):
            self.assertRegex(header, expected)

    def test_what_to_do_next_works(self):
        run = self.train("run", "train.steps=3")
        command = re.search(r"next +lockstep (.*)", run.output).group(1).split()
        told = subprocess.run([LOCKSTEP, *command], capture_output=True, text=True, check=False)
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertIn("accuracy", told.stdout)

    def test_an_error_stands_on_a_line_of_its_own(self):
        nan = faults("nan", "step:30 rank:0 phase:LOSS")
        kill = faults("kill", "step:30 rank:1")
        for ranks, settings, code in ((1, (*FP32, nan), 5), (2, (*FP32, nan), 5), (2, (kill,), 7)):
            if ranks not in RANK_COUNTS:
                continue
            with self.subTest(ranks=ranks, code=code):
                window = self.watch("train.steps=60", *settings, ranks=ranks, code=code,
                                    resume="never")
                self.assertTrue(window.bars)
                self.assertRegex(ESCAPES.sub("", window.text), r"\nlockstep: error[^\n]*exit %d" % code)

    def test_a_restart_stands_on_a_line_of_its_own(self):
        window = self.watch("train.steps=40", faults("kill", "step:20 rank:1"), ranks=2, options=("--max-restarts", "1"))
        self.assertRegex(ESCAPES.sub("", window.text), r"\nlockstep: warning: starting the ranks again: restart 1 of 1")

    def test_a_terminal_that_cannot_move_its_cursor_gets_lines(self):
        for ranks in RANK_COUNTS:
            window = self.watch(*SHORT, ranks=ranks, variables={"TERM": "dumb"}, resume="never")
            self.assertNotIn("\x1b", window.text)
            self.assertNotRegex(window.text, "\r[^\n]")
            self.assertIn("step 40/40", window.text)

    def test_no_color_is_respected(self):
        for ranks in RANK_COUNTS:
            colored = self.watch(*SHORT, ranks=ranks, resume="never")
            plain = self.watch(*SHORT, ranks=ranks, variables={"NO_COLOR": "1"}, resume="never")
            self.assertTrue(plain.bars)
            self.assertIsNone(COLORS.search(plain.text))
            self.assertIsNotNone(COLORS.search(colored.text))

    def test_quiet_prints_the_result_alone(self):
        for ranks in RANK_COUNTS:
            window = self.watch(*SHORT, ranks=ranks, options=("--quiet",), resume="never")
            lines = window.text.replace("\r\n", "\n").split("\n")
            self.assertRegex(ESCAPES.sub("", lines[0]), "^done +40 steps")
            self.assertEqual(window.bars, [])

    def test_quiet_still_prints_errors(self):
        # Without a word of the warm-up, which is longer than the run.
        run = self.train("run", *FP32, "train.steps=5", faults("nan", "step:3 rank:0 phase:LOSS"),
                         options=("--quiet",), code=5)
        self.assertTrue(run.output.startswith("lockstep: error"), run.output)

    def test_json_is_the_metrics_and_nothing_else(self):
        for ranks, settings, code in ((1, (), 0), (2, (), 0), (2, (faults("kill", "step:33 rank:1"),), 7)):
            if ranks not in RANK_COUNTS:
                continue
            with self.subTest(ranks=ranks, code=code):
                command = self.command(f"run-{ranks}-{code}", *SHORT, *settings) + ["--json", "--nproc", str(ranks)]
                ended = subprocess.run(command, capture_output=True, text=True, check=False)
                self.assertEqual(ended.returncode, code, ended.stderr)
                lines = ended.stdout.splitlines()
                metrics = (self.folder / f"run-{ranks}-{code}" / "metrics.jsonl").read_text().splitlines()
                self.assertEqual(lines, metrics)
                self.assertEqual(json.loads(lines[-1])["event"], "failed" if code else "done")
                self.assertIn("job        digits_convnet", ended.stderr)

    def test_elsewhere_there_are_plain_lines(self):
        for ranks in RANK_COUNTS:
            run = self.train(f"run-{ranks}", *SHORT, "train.log_every=10", ranks=ranks)
            self.assertNotIn("\x1b", run.output)
            self.assertNotIn("\r", run.output)
            self.assertEqual(re.findall(r"^step (\d+)/40", run.output, re.MULTILINE), ["1", "10", "20", "30", "40"])


class Asked(RunTest):
    def test_a_stop_in_the_last_step_still_evaluates(self):
        for ranks in RANK_COUNTS:
            with self.subTest(ranks=ranks):
                slow = faults("delay", "step:6 rank:0 milliseconds:1500 phase:BACKWARD")
                live = self.start(f"run-{ranks}", "train.steps=6", "checkpoint.every_steps=5", slow, ranks=ranks)
                live.wait_for_step(5)
                live.process.send_signal(signal.SIGTERM)
                run = live.finish()
                self.assertEqual(run.code, 0, run.output)
                self.assertEqual((run.summary["status"], run.summary["step"]), ("done", 6))
                self.assertEqual(run.summary["eval"]["samples"], 297)


if __name__ == "__main__":
    unittest.main()
