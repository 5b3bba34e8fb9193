#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The processes of the pods that `lockstep launch kubernetes` describes, on hosts of a cluster: they train to the bits of
other ways of starting, also when they are asked to end meanwhile. LOCKSTEP_BINARY is the command."""
import os
import signal
import subprocess
import sys
import time
import unittest

from cluster import Cluster, children, missing
from launched import pods_of, process_of
from processes import signal_marked
from trainings import JOB, LOCKSTEP, ONE_THREAD, Run, Training, unreachable

try:
    import yaml
except ImportError:
    yaml = None

SETTINGS = ("train.steps=300", "schedule=unset", "train.eval_every=0", "checkpoint.every_steps=50")
PATIENCE_S = 120
# What the operator gives to pods: a key to all, the hosts to the launcher.
KEY = """mkdir -p /etc/mpi-ssh && cd /etc/mpi-ssh && printf %s "$1" > id_rsa && printf %s "$2" > authorized_keys"""
HOSTS = "mkdir -p /etc/mpi && printf 'b slots=1\\nc slots=1\\n' > /etc/mpi/hostfile"


class Pods(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(f"pods-test-{os.getpid()}")
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up(3)
        undisturbed = Training(cls.cluster, "variables", "ab", settings=SETTINGS)
        ended = undisturbed.finish(PATIENCE_S)
        assert set(ended.codes) == {0}, ended
        cls.whole = undisturbed.digest()

    def setUp(self):
        self.run_dir = Run(self.cluster.state / "shared" / self.id().rpartition(".")[2])

    def on(self, host, *command):
        ended = self.cluster.run(host, *command)
        self.assertEqual(ended.returncode, 0, f"{command[:2]} on {host}: {ended.stderr}")
        return ended.stdout

    def documents(self, *options):
        settings = [word for setting in SETTINGS for word in ("--set", setting)]
        text = self.on("a", LOCKSTEP, "launch", "kubernetes", JOB, "--image", "none", "--claim", "none", "--folder", "/", "--nodes", 2,
                       "--run-dir", f"/shared/{self.run_dir.run_dir.name}", *settings, *options)
        return list(yaml.safe_load_all(text))

    def start(self, host, pod, **variables):
        words, given = process_of(pod)
        path = f"{LOCKSTEP.parent}:/usr/sbin:/usr/bin:/sbin:/bin"
        process = self.cluster.start(host, *words, environment={**ONE_THREAD, **given, **variables, "PATH": path},
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def finish(self, processes, code):
        texts = [process.communicate(timeout=PATIENCE_S)[0] for process in processes]
        self.assertEqual([process.returncode for process in processes], [code] * len(processes), texts)

    def wait_for_step(self, process, step):
        end = time.monotonic() + PATIENCE_S
        while self.run_dir.step() < step:
            self.assertIsNone(process.poll(), process.returncode)
            self.assertLess(time.monotonic(), end, f"step {self.run_dir.step()}")
            time.sleep(0.01)

    def test_the_pods_of_an_indexed_job_train_to_the_same_bits(self):
        _, job = self.documents("--plain")
        pod, = pods_of(job)
        self.finish([self.start(host, pod, JOB_COMPLETION_INDEX=index, MASTER_ADDR="a") for index, host in enumerate("ab")], 0)
        self.assertEqual(self.run_dir.digest(), self.whole)

    def test_an_mpi_job_that_is_asked_to_end_saves_and_goes_on_to_the_same_bits(self):
        job, = self.documents()
        launcher, worker = pods_of(job)
        key = self.cluster.state / "operator"
        subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-b", "521", "-m", "PEM", "-N", "", "-f", key], check=True)
        for host in "abc":
            self.on(host, "sh", "-ec", KEY, "operator", key.read_text(), key.with_suffix(".pub").read_text())
        self.on("a", "sh", "-ec", HOSTS)
        for host in "bc":
            self.start(host, worker)
            self.on(host, "sh", "-c", "until ssh-keyscan -p 2222 localhost 2> /dev/null | grep -q ed25519; do sleep 0.1; done")
        for host in "bc":
            self.cluster.link(host, delay=0.005)
        mark = f"pod of {os.getpid()}"
        begun = self.start("a", launcher, TEST_POD=mark)
        self.wait_for_step(begun, 20)
        # The process that leads to the host hands no signal on.
        signal_marked(children(begun.pid)[0], "TEST_POD", mark, signal.SIGTERM)
        self.finish([begun], 75)
        for host in "bc":
            self.cluster.link(host, delay=0)
        resumed = self.start("a", launcher)
        self.finish([resumed], 0)
        self.assertEqual(self.run_dir.digest(), self.whole)


if __name__ == "__main__":
    if reason := missing() or unreachable() or ("" if yaml else "python3-yaml is not installed: scripts/setup test"):
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
