#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Slurm's daemons on hosts, and trainings under srun as docs/several-machines.md#slurm has them: to the bits of other ways of
starting. LOCKSTEP_BINARY is the command."""
import os
import sys
import unittest

from cluster import Cluster, missing
from slurm import Slurm
from slurm import missing as missing_slurm
from trainings import SLURM_WAYS, Training, unreachable

SHORT = ("train.steps=12", "schedule=unset", "train.eval_every=0")
PATIENCE_S = 120


class UnderSlurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(f"slurm-test-{os.getpid()}")
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up(3)
        cls.slurm = Slurm(cls.cluster)
        cls.slurm.start(cls.slurm.hosts)

    def test_every_way_of_starting_trains_a_layout_to_the_same_bits(self):
        for hosts, ranks_a_host in (("a", 2), ("ab", 2), ("abc", 1)):
            digests = {}
            for way in ("variables", *SLURM_WAYS):
                training = Training(self.cluster, way, hosts, ranks_a_host, SHORT)
                ended = training.finish(PATIENCE_S)
                self.assertEqual(set(ended.codes), {0}, f"{way} on {hosts}: {ended}")
                digests[way] = training.digest()
            self.assertEqual(len(set(digests.values())), 1, f"{hosts}, {ranks_a_host} ranks a host: {digests}")


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
