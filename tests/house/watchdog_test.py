# SPDX-License-Identifier: Apache-2.0
"""tests/support/watchdog keeps what its command does to itself, and ends all that the command has started."""
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

WATCHDOG = Path(__file__).resolve().parents[1] / "support/watchdog"


class Watchdog(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def start(self, script, *options):
        """The watchdog around a Python script."""
        preamble = "import os, pathlib, signal, subprocess, sys, time\n"
        return subprocess.Popen([WATCHDOG, *options, sys.executable, "-c", preamble + script], cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def watch(self, script, *options):
        process = self.start(script, *options)
        output, _ = process.communicate()
        return process.returncode, output

    def process_in(self, name):
        """The process id that the script writes into a file."""
        path = self.folder / name
        while not path.exists() or not path.read_text():
            time.sleep(0.01)
        return int(path.read_text())

    def assert_ended(self, pid):
        for _ in range(1000):
            try:
                stat = Path(f"/proc/{pid}/stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                return
            if stat.rpartition(")")[2].split()[0] in "ZX":
                return
            time.sleep(0.01)
        self.fail(f"process {pid} is still there")

    def test_the_command_leads_a_session_of_its_own(self):
        self.assertEqual(self.watch("print(os.getsid(0) == os.getpgrp() == os.getpid(), end='')"), (0, "True"))

    def test_a_signal_of_the_command_to_its_group_stays_inside(self):
        # Whoever means one process and signals 0 kills all of its group.
        code, output = self.watch("print('before', flush=True); os.kill(0, signal.SIGKILL)")
        self.assertEqual(code, 128 + signal.SIGKILL, output)
        self.assertIn("before", output)

    def test_the_exit_status_is_the_command_s(self):
        self.assertEqual(self.watch("print('no', end=''); sys.exit(3)"), (3, "no"))

    def test_the_limit_ends_the_whole_group(self):
        # The child has not the mark that the watchdog finds processes by.
        code, output = self.watch("child = subprocess.Popen(['sleep', '600'], env={})\n"
                                  "pathlib.Path('child').write_text(str(child.pid))\n"
                                  "time.sleep(600)", "--limit", "1")
        self.assertEqual(code, 124, output)
        self.assertIn("no end after 1 s", output)
        self.assert_ended(self.process_in("child"))

    def test_the_limit_ends_who_has_left_the_group(self):
        code, output = self.watch("child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
                                  "pathlib.Path('child').write_text(str(child.pid))\n"
                                  "time.sleep(600)", "--limit", "1")
        self.assertEqual(code, 124, output)
        self.assert_ended(self.process_in("child"))

    def test_signals_are_passed_on(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number.name):
                (self.folder / "ready").unlink(missing_ok=True)
                process = self.start(f"def told(*_):\n  print('told', end='')\n  sys.exit(0)\n"
                                     f"signal.signal({number}, told)\n"
                                     "pathlib.Path('ready').write_text(str(os.getpid()))\n"
                                     "time.sleep(600)")
                self.process_in("ready")
                process.send_signal(number)
                self.assertEqual(process.communicate()[0], "told")
                self.assertEqual(process.returncode, 128 + number)

    def test_a_command_that_does_not_listen_is_killed(self):
        process = self.start("signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                             "pathlib.Path('ready').write_text(str(os.getpid()))\n"
                             "time.sleep(600)")
        pid = self.process_in("ready")
        process.terminate()
        process.communicate()
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assert_ended(pid)

    def test_the_command_goes_with_a_watchdog_that_is_killed(self):
        process = self.start("pathlib.Path('ready').write_text(str(os.getpid()))\ntime.sleep(600)")
        pid = self.process_in("ready")
        process.kill()
        process.communicate()
        self.assert_ended(pid)

    def test_a_process_left_behind_is_a_failure_and_ended(self):
        code, output = self.watch("child = subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL)\n"
                                  "pathlib.Path('child').write_text(str(child.pid))")
        self.assertEqual(code, 125, output)
        self.assertIn("left behind", output)
        self.assert_ended(self.process_in("child"))

    def test_files_of_open_mpi_left_behind_are_a_failure(self):
        script = "pathlib.Path(os.environ['OMPI_MCA_osc_sm_backing_directory'], 'osc_sm.1').touch()"
        code, output = self.watch(script)
        self.assertEqual(code, 125, output)
        self.assertIn("shared memory left behind: osc_sm.1", output)
        script = "print(os.environ['OMPI_MCA_orte_tmpdir_base'], end='')"
        code, folder = self.watch(script)
        self.assertEqual(code, 0)
        self.assertFalse(Path(folder).exists())
        # One that was killed could not remove its own; whoever comes an hour later does.
        abandoned = Path(tempfile.mkdtemp(prefix="watchdog-", dir=Path(folder).parent))
        os.utime(abandoned, (0, 0))
        self.watch("pass")
        self.assertFalse(abandoned.exists())

    def test_every_pattern_is_expected_in_its_number_of_lines(self):
        lines = "print('rank 0 ends'); print('rank 1 ends')"
        expected = ("--expect", "2", "rank [0-9]", "--expect", "1", "rank 1")
        self.assertEqual(self.watch(lines, *expected)[0], 0)
        for wrong in (("--expect", "1", "rank 2"), ("--expect", "1", "rank")):
            code, output = self.watch(lines, *expected, *wrong)
            self.assertEqual(code, 126, output)
            self.assertIn(f'lines match "{wrong[2]}", expected 1', output)


if __name__ == "__main__":
    unittest.main()
