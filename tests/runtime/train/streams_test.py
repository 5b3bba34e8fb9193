# SPDX-License-Identifier: Apache-2.0
"""A run whose stdout or stderr came closed, or that nobody reads in a pipe or a terminal, trains and ends as ever."""
import fcntl
import json
import os
import pty
import signal
import subprocess
import time
import unittest

from runs import FP32, RANK_COUNTS, TALKATIVE, RunTest, faults

ENDLESS = (*TALKATIVE, "train.steps=10000000", "checkpoint.every_steps=500")
SMALL_PIPE = 4096


class StreamTest(RunTest):
    def popen(self, command, **streams):
        # Lines, in a terminal too: they are more than a progress bar would be.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env={**os.environ, "TERM": "dumb"}, **streams)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def unread_pipe(self):
        reading, writing = os.pipe()
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, SMALL_PIPE)
        return self.closed_later(reading, writing)

    def unread_terminal(self):
        return self.closed_later(*pty.openpty())

    def closed_later(self, reading, writing):
        for end in (reading, writing):
            self.addCleanup(os.close, end)
        return writing

    def wait_for_checkpoint(self, process, name, step):
        while not (self.folder / name / "checkpoints" / f"step-{step:08}").exists():
            self.assertIsNone(process.poll())
            time.sleep(0.01)

    def steps(self, name):
        """Those that its metrics tell of."""
        text = (self.folder / name / "metrics.jsonl").read_text(encoding="utf-8")
        return [line["step"] for line in map(json.loads, text.splitlines()) if "event" not in line]


class Closed(StreamTest):
    def test_a_run_trains_without_them(self):
        for ranks in RANK_COUNTS:
            for closed in ((1,), (2,), (0, 1, 2)):
                with self.subTest(ranks=ranks, closed=closed):
                    name = f"run-{ranks}-{len(closed)}-{closed[0]}"
                    command = self.command(name, *TALKATIVE, "train.steps=20") + ["--nproc", str(ranks)]
                    process = self.popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                         preexec_fn=lambda numbers=closed: [os.close(number) for number in numbers])
                    self.assertEqual(process.wait(), 0)
                    self.assertEqual(self.steps(name), list(range(1, 21)))


class Unread(StreamTest):
    def streams(self):
        for ranks in RANK_COUNTS:
            for kind, stream in (("pipe", self.unread_pipe()), ("terminal", self.unread_terminal())):
                with self.subTest(kind, ranks=ranks):
                    yield f"{kind}-{ranks}", stream, ["--nproc", str(ranks)]

    def test_a_run_ends_all_the_same(self):
        for name, stream, ranks in self.streams():
            process = self.popen(self.command(name, *TALKATIVE) + ranks, stdout=stream, stderr=stream)
            self.assertEqual(process.wait(), 0)
            self.assertEqual(self.steps(name), list(range(1, 1001)))

    def test_words_on_stderr_do_not_hold_a_run(self):
        for name, stream, ranks in self.streams():
            command = self.command(name, *TALKATIVE) + ranks + ["--json"]
            process = self.popen(command, stdout=subprocess.DEVNULL, stderr=stream)
            self.assertEqual(process.wait(), 0)
            self.assertEqual(self.steps(name), list(range(1, 1001)))

    def test_a_request_to_stop_is_obeyed(self):
        for options in ([], ["--json"]):
            for name, stream, ranks in self.streams():
                name += f"-{len(options)}"
                streams = {"stdout": subprocess.DEVNULL if options else stream, "stderr": stream}
                process = self.popen(self.command(name, *ENDLESS) + ranks + options, **streams)
                self.wait_for_checkpoint(process, name, 1000)
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(), 75)

    def test_an_error_ends_a_run(self):
        nan = faults("nan", "step:800 rank:0 phase:LOSS")
        for name, stream, ranks in self.streams():
            command = self.command(name, *TALKATIVE, *FP32, nan) + ranks + ["--json"]
            process = self.popen(command, stdout=subprocess.DEVNULL, stderr=stream)
            self.assertEqual(process.wait(), 5)


if __name__ == "__main__":
    unittest.main()
