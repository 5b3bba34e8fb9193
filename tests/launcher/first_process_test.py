#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""As process 1 of a container, here of a namespace, the command takes note of the end of processes that were left to it,
hands signals on and ends with its own exit code. LOCKSTEP_BINARY is the command."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from processes import signal_marked  # noqa: E402
BINARY = os.environ["LOCKSTEP_BINARY"]
UNSHARE = ["unshare", *([] if os.getuid() == 0 else ["--user", "--map-root-user"]), "--pid", "--fork", "--kill-child",
           "--mount-proc"]
JOB = str(ROOT / "configs/digits_mlp.pbtxt")
ENDLESS = ["--set", "train.steps=100000000", "--set", "schedule=unset", "--set", "train.eval_every=0"]
PATIENCE_S = 60


def may_unshare():
    try:
        return subprocess.run([*UNSHARE, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def status_of(pid):
    fields = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
    return {name: value.strip() for name, value in fields.items()}


def children(pid):
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def until(happens):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if result := happens():
            return result
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


@unittest.skipUnless(may_unshare(), "this machine gives no namespace")
class FirstProcess(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, *command):
        self.mark = uuid.uuid4().hex
        process = subprocess.Popen([*UNSHARE, *command], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, env={**os.environ, "FIRST_PROCESS_TEST": self.mark})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)  # --kill-child: and all of the namespace
        return process, until(lambda: children(process.pid))[0]

    def first_step(self):
        metrics = self.folder / "run/metrics.jsonl"
        until(lambda: metrics.exists() and any(json.loads(line).get("step", 0) > 0 for line in
                                               metrics.read_text().splitlines(True) if line.endswith("}\n")))

    def expect_saved_on(self, number):
        process, first = self.start(BINARY, "train", JOB, "--run-dir", "run", *ENDLESS)
        self.assertEqual(status_of(first)["NSpid"].split()[-1], "1")
        self.first_step()
        signal_marked(first, "FIRST_PROCESS_TEST", self.mark, number)
        said, _ = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 75, said)
        self.assertTrue(list((self.folder / "run/checkpoints").glob("step-*")), said)

    def test_sigterm_saves_and_ends_with_75(self):
        self.expect_saved_on(signal.SIGTERM)

    def test_sigint_saves_and_ends_with_75(self):
        self.expect_saved_on(signal.SIGINT)

    def test_the_exit_code_is_that_of_the_command(self):
        for arguments, code in ((["--version"], 0), (["train", "missing.pbtxt"], 2), (["inspect", "missing"], 4)):
            done = subprocess.run([*UNSHARE, BINARY, *arguments], cwd=self.folder, text=True, capture_output=True)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)

    def test_orphans_are_reaped(self):
        # The shell becomes the command, so that what it left is a child of process 1 all the same.
        leaves = "(for i in 1 2 3; do sleep 0.5 & done); exec \"$@\""
        process, first = self.start("sh", "-c", leaves, "sh", BINARY, "train", JOB, "--run-dir", "run", *ENDLESS)
        self.first_step()
        until(lambda: len(children(first)) == 1)
        self.assertFalse([child for child in children(first) if status_of(child)["State"].startswith("Z")])
        signal_marked(first, "FIRST_PROCESS_TEST", self.mark, signal.SIGTERM)
        said, _ = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 75, said)


if __name__ == "__main__":
    unittest.main()
