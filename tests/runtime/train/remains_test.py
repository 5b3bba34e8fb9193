# SPDX-License-Identifier: Apache-2.0
"""What stays in memory of a run of which every process was killed: nothing once its ranks have joined, and of a start
nothing once there is another."""
import os
import random
import signal
import time
import unittest
from pathlib import Path

from runs import RunTest, require_mpi, signal_marked, variables

MEMORY = Path("/dev/shm")
PATIENCE = 30  # seconds
ENDLESS = ("train.steps=1000000", "train.eval_every=0", "schedule.cosine.warmup_steps=5")


class Remains(RunTest):
    def setUp(self):
        super().setUp()
        require_mpi()
        if not os.access(MEMORY, os.W_OK):
            self.skipTest(f"there is no {MEMORY}")

    def processes(self, live):
        marked = {}
        for process in filter(str.isdecimal, os.listdir("/proc")):
            entries = variables(process)
            if entries.get("LOCKSTEP_TEST_RUN") == live.mark:
                marked[int(process)] = entries
        return marked

    def scratch(self, live):
        """The run's directory in memory, once mpirun has been told of it."""
        while live.process.poll() is None:
            for entries in self.processes(live).values():
                path = Path(entries.get("OMPI_MCA_orte_tmpdir_base", ""))
                if path.parent == MEMORY and path.name.startswith("lockstep-run-"):
                    return path
        self.fail(live.finish().output)

    def kill_all(self, live):
        """Returns the numbers that the processes had."""
        seen = set()
        while running := self.processes(live):
            for process in running:
                signal_marked(process, "LOCKSTEP_TEST_RUN", live.mark, signal.SIGKILL)
            seen |= running.keys()
            live.process.poll()
        live.finish()
        return seen

    def assert_goes(self, paths):
        """What start removes them is not told: that of another test may, and has the lock then."""
        end = time.monotonic() + PATIENCE
        while (left := [path for path in paths() if path.exists()]) and time.monotonic() < end:
            time.sleep(0.001)
        self.assertEqual(left, [])

    def assert_nothing_of(self, processes):
        """No file that a rank has made for the others, which is named after it. One that was killed before the file had
        its lock leaves "new" in the name for a minute."""
        self.assert_goes(lambda: [path for path in MEMORY.glob("lockstep.*")
                                  if int(path.name.split(".")[1]) in processes and path.suffix != ".new"])

    def test_nothing_stays_of_a_run_whose_ranks_had_joined(self):
        live = self.start("run", *ENDLESS, ranks=2)
        scratch = self.scratch(live)
        while scratch.exists():
            self.assertIsNone(live.process.poll())
            time.sleep(0.001)
        processes = self.kill_all(live)
        self.assertGreaterEqual(len(processes), 4, "the launcher, mpirun and two ranks")
        self.assertFalse(scratch.exists())
        self.assert_nothing_of(processes)

    def test_what_stays_of_a_start_goes_with_the_next_one(self):
        instants = random.Random(1)
        remains = []
        processes = set()
        for number in range(5):
            live = self.start(f"run-{number}", *ENDLESS, ranks=2)
            remains.append(self.scratch(live))
            time.sleep(instants.uniform(0, 0.3))
            processes |= self.kill_all(live)
        other = self.start("other", *ENDLESS, ranks=2)
        living = self.scratch(other)
        self.assert_goes(lambda: remains)
        self.assertNotIn(living, remains)
        processes |= self.kill_all(other)
        self.train("last", "train.steps=2", "train.eval_every=0", "schedule.cosine.warmup_steps=1", ranks=2)
        self.assert_goes(lambda: [living])
        self.assert_nothing_of(processes)


if __name__ == "__main__":
    unittest.main()
