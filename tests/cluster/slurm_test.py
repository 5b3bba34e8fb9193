#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trainings under Slurm on three hosts, as docs/several-machines.md#slurm has them: to the bits of other ways of starting;
what is preempted, out of time or on a lost host goes on to the bits of what nothing happened to. LOCKSTEP_BINARY is the
command."""
import os
import re
import sys
import time
import unittest

from cluster import PATH, Cluster, missing
from slurm import Slurm
from slurm import missing as missing_slurm
from trainings import JOB, LOCKSTEP, ONE_THREAD, SLURM_WAYS, Run, Training, has_rdma, unreachable

SHORT = ("train.steps=12", "schedule=unset", "train.eval_every=0")
# Two seconds over a fast link.
LONG = ("train.steps=300", "schedule=unset", "train.eval_every=0", "checkpoint.every_steps=10", "comm.timeout_s=5")
# Delays of links, over which they take longer than there is time for, so that something can happen to them.
SLOW_S, HELD_S = 0.005, 0.03
PATIENCE_S = 120
ENDS = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED"}


class Job(Run):
    """The script that `lockstep launch slurm` writes, one rank on each of two hosts. `way`: how srun starts them. `programs`: a
    folder before all others of PATH."""

    def __init__(self, cluster, name, *options, settings=(), programs="", way="none"):
        super().__init__(cluster.state / "shared" / name)
        self.cluster = cluster
        self.path = f"{programs}:{LOCKSTEP.parent}:{PATH}"
        self.output = cluster.state / f"shared/{name}.out"
        settings = [word for setting in (*LONG, *settings) for word in ("--set", setting)]
        script = f"/shared/{name}.sbatch"
        self.say(LOCKSTEP, "launch", "slurm", JOB, "--nodes", 2, "--run-dir", f"/shared/{name}", "--out", script,
                 *(["--plain"] if way == "none" else []), *settings)
        self.number = self.say("sbatch", "--parsable", "--output", f"/shared/{name}.out", *options, script)

    def say(self, *command):
        ended = self.cluster.run("a", *command, environment={**ONE_THREAD, "PATH": self.path})
        assert ended.returncode == 0, f"{command}: {ended.stderr}"
        return ended.stdout.strip()

    def facts(self):
        return dict(re.findall(r"(\w+)=(\S*)", self.say("scontrol", "show", "job", self.number)))

    def wait_for(self, reached, limit=PATIENCE_S):
        end = time.monotonic() + limit
        while not reached(self):
            assert time.monotonic() < end, f"{self}"
            time.sleep(0.1)

    def finish(self):
        self.wait_for(lambda job: job.facts()["JobState"] in ENDS)
        return self.facts()

    def text(self):
        return self.output.read_text(errors="replace") if self.output.exists() else ""

    def __str__(self):
        return f"{self.say('scontrol', 'show', 'job', self.number)}\nstep {self.step()}\n{self.text()}"


class UnderSlurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(f"slurm-test-{os.getpid()}")
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up(3)
        cls.slurm = Slurm(cls.cluster)
        cls.slurm.start(cls.slurm.hosts)
        undisturbed = Training(cls.cluster, "variables", "ab", settings=LONG)
        ended = undisturbed.finish(PATIENCE_S)
        assert set(ended.codes) == {0}, ended
        cls.whole = undisturbed.digest()

    def tearDown(self):
        self.delay(0)

    def delay(self, seconds):
        for host in self.slurm.hosts:
            self.cluster.link(host, delay=seconds)

    def submit(self, name, *options):
        """A job that trains, and takes its time."""
        self.delay(SLOW_S)
        job = self.start(name, *options)
        job.wait_for(lambda job: job.step() >= 15)
        self.delay(HELD_S)
        return job

    def start(self, name, *options, **more):
        job = Job(self.cluster, name, *options, **more)
        self.addCleanup(job.say, "scancel", job.number)
        return job

    def assert_whole(self, job, restarts):
        self.delay(0)
        facts = job.finish()
        self.assertEqual((facts["JobState"], facts["Restarts"]), ("COMPLETED", str(restarts)), job)
        self.assertEqual(job.digest(), self.whole, job)
        self.assertEqual(job.text().count("resuming from"), restarts, job)

    def test_every_way_of_starting_trains_a_layout_to_the_same_bits(self):
        for hosts, ranks_a_host in (("a", 2), ("ab", 2), ("abc", 1)):
            digests = {}
            for way in ("variables", *SLURM_WAYS):
                training = Training(self.cluster, way, hosts, ranks_a_host, SHORT)
                ended = training.finish(PATIENCE_S)
                self.assertEqual(set(ended.codes), {0}, f"{way} on {hosts}: {ended}")
                digests[way] = training.digest()
                through_mpi = way.endswith("through MPI") or (way == "srun with PMIx" and (len(hosts) == 1 or has_rdma()))
                self.assertEqual(training.transport(), "mpi" if through_mpi else "tcp", way)
            self.assertEqual(len(set(digests.values())), 1, f"{hosts}, {ranks_a_host} ranks a host: {digests}")

    def test_a_batch_script_trains_to_the_end(self):
        self.assert_whole(self.start("whole"), 0)

    def test_a_batch_script_of_ranks_that_join_through_mpi_survives_the_loss_of_one(self):
        job = self.start("mpi", "--export", "ALL,LOCKSTEP_TRANSPORT=mpi", way="pmix", settings=("fault={kill{step:25 rank:1}}",))
        self.assert_whole(job, 1)
        self.assertEqual(job.transport(), "mpi")

    def test_a_batch_script_of_ranks_that_slurm_starts_with_pmix_survives_the_loss_of_one(self):
        self.assert_whole(self.start("pmix", way="pmix", settings=("fault={kill{step:25 rank:1}}",)), 1)

    def test_a_job_that_loses_a_rank_is_requeued_and_goes_on(self):
        self.assert_whole(self.start("killed", settings=("fault={kill{step:25 rank:1}}",)), 1)

    def test_a_job_that_is_asked_to_end_before_it_can_listen_is_requeued(self):
        programs = self.cluster.state / "shared/programs"
        programs.mkdir()
        (programs / "lockstep").write_text(f"""#!/bin/sh
[ "${{SLURM_RESTART_COUNT:-0}}" -gt 0 ] || kill -TERM $$
exec {LOCKSTEP} "$@"
""")
        (programs / "lockstep").chmod(0o755)
        job = self.start("early", programs="/shared/programs")
        facts = job.finish()
        self.assertEqual((facts["JobState"], facts["Restarts"]), ("COMPLETED", "1"), job)
        self.assertEqual(job.digest(), self.whole, job)

    def test_a_preempted_job_is_requeued_and_goes_on(self):
        job = self.submit("preempted")
        job.say("sbatch", "--partition", "urgent", "--nodes", 3, "--exclusive", "--output", "/dev/null", "--wrap", "true")
        job.wait_for(lambda job: job.facts()["Restarts"] == "1")
        self.assertIn("stopping after this step and saving", job.text(), job)
        self.assert_whole(job, 1)

    def test_a_job_whose_time_is_over_is_requeued_and_goes_on(self):
        job = self.submit("late", "--time", 30)
        job.say("scontrol", "update", f"JobId={job.number}", "TimeLimit=2")  # within the script's 120 seconds of its end
        job.wait_for(lambda job: job.facts()["Restarts"] == "1")
        job.say("scontrol", "update", f"JobId={job.number}", "TimeLimit=30")
        self.assertIn("stopping after this step and saving", job.text(), job)
        self.assert_whole(job, 1)

    def test_a_job_that_loses_the_host_of_its_script_is_requeued_and_goes_on_with_another(self):
        job = self.submit("lost")
        self.addCleanup(self.slurm.start, ["b"])
        self.addCleanup(self.cluster.power, "b", True)
        self.cluster.power("b", False)
        self.assert_whole(job, 1)

    def test_a_cancelled_job_saves_and_is_not_started_again(self):
        job = self.submit("cancelled")
        job.say("scancel", job.number)
        facts = job.finish()
        self.assertEqual((facts["JobState"], facts["Restarts"]), ("CANCELLED", "0"), job)
        self.assertTrue(list((job.run_dir / "checkpoints").glob("step-*")), job)


class Daemons(unittest.TestCase):
    def test_run_tasks_on_every_host_also_after_a_loss_of_power_and_end_with_them(self):
        cluster = Cluster(f"slurm-daemons-test-{os.getpid()}")
        self.addCleanup(cluster.down)
        cluster.up(2)
        slurm = Slurm(cluster)
        slurm.start(slurm.hosts)
        self.assertEqual(sorted(slurm.on("a", "srun", "--nodes", "2", "hostname").split()), ["a", "b"])
        slurm.wait_for(slurm.hosts)  # else it would wait for the end of that job on b
        cluster.power("b", False)
        cluster.power("b", True)
        slurm.start(["b"])
        self.assertEqual(sorted(slurm.on("a", "srun", "--nodes", "2", "hostname").split()), ["a", "b"])
        held = cluster.hold()
        self.addCleanup(held.close)
        cluster.down()
        self.assertEqual(cluster.leftovers(held), [])


if __name__ == "__main__":
    if reason := missing() or unreachable() or missing_slurm():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
