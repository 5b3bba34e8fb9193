#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run directories on the disks of the hosts themselves: where rank 0 lies, what it sees of checkpoints elsewhere, and what
the launcher leaves where it runs. LOCKSTEP_BINARY is the command."""
import os
import re
import sys
import time
import unittest

from cluster import Cluster, missing
from trainings import JOB, LOCKSTEP, unreachable

PATIENCE_S = 120
SHORT = ("schedule=unset", "train.eval_every=0", "comm.timeout_s=5")
RUN = "/local/run"
OF_STEP = rf"host {{}} holds a checkpoint of step {{}} in {RUN}, and rank 0, on host {{}}, sees {{}} there"


class OnHosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(f"run-directories-test-{os.getpid()}")
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up(3)

    def setUp(self):
        for host in "abc":
            self.cluster.run(host, "rm", "-rf", RUN)

    def command(self, hosts, *options, steps=4, settings=()):
        command = [LOCKSTEP, "train", JOB, "--run-dir", RUN, "--device", "cpu", "--hosts", hosts, *options]
        for setting in (f"train.steps={steps}", *SHORT, *settings):
            command += ["--set", setting]
        return command

    def train(self, hosts, *options, on="a", code=0, environment=None, wrapper=(), **how):
        ended = self.cluster.run(on, *wrapper, *self.command(hosts, *options, **how), timeout=PATIENCE_S,
                                 environment={"OMP_NUM_THREADS": "1"} if environment is None else environment)
        output = ended.stdout + ended.stderr
        self.assertEqual(ended.returncode, code, output)
        return output

    def run_of(self, host):
        return self.cluster.state / "local" / host / "run"

    def steps_of(self, host):
        return sorted(int(name[5:]) for name in os.listdir(self.run_of(host) / "checkpoints") if name.startswith("step-"))

    def test_rank_zero_writes_on_the_first_host_that_is_named(self):
        for hosts in ("b:1,a:1", "b:2,a:1,c:1"):
            self.setUp()
            self.assertIn(f"run        {RUN}, on host b\n", self.train(hosts))
            self.assertEqual(self.steps_of("b"), [4])
            self.assertFalse(self.run_of("a").exists(), "the launcher makes nothing where rank 0 is not")

    def test_a_newer_checkpoint_on_another_host_ends_a_run_that_would_begin_anew(self):
        self.train("a,b")
        told = OF_STEP.format("a", 4, "b", "none")
        for options in ((), ("--quiet",)):
            self.assertRegex(self.train("b,a", *options, steps=8, code=2), told)
        self.assertFalse(self.run_of("b").exists())
        self.assertRegex(self.train("a,b", steps=8), "resuming from .*/step-00000004")
        self.assertNotRegex(self.train("b,a", "--resume", "never"), "holds a checkpoint")
        # Now each has one.
        self.assertRegex(self.train("b,a", steps=12, code=2), OF_STEP.format("a", 8, "b", "only one of step 4"))

    def test_an_older_checkpoint_on_another_host_is_named_in_a_quiet_run_too(self):
        self.train("b,a")
        self.train("a,b", "--resume", "never", steps=8)
        told = self.train("a,b", "--quiet", steps=12)
        self.assertRegex(told, "warning.*" + OF_STEP.format("b", 4, "a", "one of step 8"))
        self.assertEqual(self.steps_of("a")[-1], 12)

    def test_a_launcher_beside_the_hosts_leaves_its_own_run_directory_alone(self):
        kill = ("fault={ kill { step: 3 rank: 1 } }",)
        self.train("a,b", on="c", code=7, settings=kill)
        self.assertFalse(self.run_of("c").exists())
        self.assertTrue((self.run_of("a") / "job.pbtxt").exists())
        # One of an earlier run.
        self.train("c,a", on="c")
        before = (self.run_of("c") / "summary.json").read_bytes()
        self.cluster.run("a", "rm", "-rf", RUN)
        self.train("a,b", "--resume", "never", on="c", code=7, settings=kill)
        self.assertEqual((self.run_of("c") / "summary.json").read_bytes(), before)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one core leaves nothing to choose")
    def test_ranks_take_the_threads_of_the_cores_of_their_host(self):
        core = min(os.sched_getaffinity(0))
        told = self.train("b,a", wrapper=("taskset", "-c", core), environment={})
        threads = int(re.search(r"ranks +2 x (\d+) thread", told)[1])
        self.assertGreater(threads, 1, told)
        self.assertRegex(self.train("a,b", "--resume", "never", environment={"OMP_NUM_THREADS": "1"}), r"2 x 1 thread, ")

    def test_a_restart_waits_for_a_host_without_power_and_goes_on_with_it(self):
        log = self.cluster.state / "output"
        settings = ("checkpoint.every_steps=5", "train.steps=200", "fault={ delay { step: 10 rank: 1 milliseconds: 600000 } }")
        with open(log, "wb") as output:
            process = self.cluster.start("a", *self.command("a,b", "--max-restarts", "1", settings=settings),
                                         environment={"OMP_NUM_THREADS": "1"}, stdout=output, stderr=output)
        self.addCleanup(process.kill)
        self.wait_until(lambda: (self.run_of("a") / "checkpoints/step-00000005").exists(), "it did not come to step 5")
        self.addCleanup(self.cluster.power, "b", True)
        self.cluster.power("b", False)
        self.wait_until(lambda: "no answer from host b" in log.read_text(), "it did not name the host")
        time.sleep(3)
        self.assertIsNone(process.poll(), log.read_text())
        self.cluster.power("b", True)
        self.assertEqual(process.wait(PATIENCE_S), 0, log.read_text())
        self.assertRegex(log.read_text(), "resuming from .*/step-00000005")

    def wait_until(self, holds, what):
        end = time.monotonic() + PATIENCE_S
        while not holds():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)


if __name__ == "__main__":
    if reason := missing() or unreachable():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
