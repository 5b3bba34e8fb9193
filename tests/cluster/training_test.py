#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A layout of ranks over hosts trains to the same bits however the ranks are started; a rank that a cut link takes away is
named within the timeout. LOCKSTEP_BINARY is the command."""
import json
import os
import sys
import time
import unittest

from cluster import PATH, TREE, Cluster, missing
from trainings import LOCKSTEP, WAYS, Training, has_rdma, unreachable

SHORT = ("train.steps=12", "schedule=unset", "train.eval_every=0")
ENDLESS = ("train.steps=100000000", "schedule=unset", "train.eval_every=0", "checkpoint.every_steps=0", "comm.timeout_s=5")
# 12.6 MB of gradients at once.
HEAVY = ("train.steps=6", "data.global_batch=48", "comm.bucket_mb=25", "comm.wire_dtype=FP32")
PATIENCE_S = 60
# Rank 2, which waits for rank 1 as well, may not have come either.
MISSED = r"rank 1 \(process \d+ on b\)(, rank 2 \(process \d+ on c\))? did not arrive within 5\.0 s"


class OnHosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(f"training-test-{os.getpid()}")
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up(3)

    def digests(self, hosts, ranks_a_host=1):
        found = {}
        for way in WAYS:
            training = Training(self.cluster, way, hosts, ranks_a_host, SHORT)
            ended = training.finish(PATIENCE_S)
            self.assertEqual(set(ended.codes), {0}, f"{way}: {ended}")
            found[way] = training.digest()
            # Where MPI is asked for, and where nobody chooses: on one host, and on those of a machine with RDMA.
            through_mpi = way.endswith("through MPI") or (way in ("hosts", "mpirun") and (len(hosts) == 1 or has_rdma()))
            self.assertEqual(training.transport(), "mpi" if through_mpi else "tcp", way)
            for transport in ("TCP", "MPI"):
                is_used = training.transport() == transport.lower() and len(hosts) > 1
                self.assertEqual(f"through {transport} between hosts" in ended.texts[0], is_used, ended)
        return found

    def test_every_way_of_starting_trains_two_ranks_on_one_host_to_the_same_bits(self):
        self.assertEqual(len(set(self.digests("a", 2).values())), 1)

    def test_every_way_of_starting_trains_two_hosts_to_the_same_bits(self):
        self.assertEqual(len(set(self.digests("ab").values())), 1)

    def test_every_way_of_starting_trains_three_hosts_to_the_same_bits(self):
        self.assertEqual(len(set(self.digests("abc").values())), 1)

    def test_every_way_of_starting_trains_two_ranks_on_each_of_two_hosts_to_the_same_bits(self):
        self.assertEqual(len(set(self.digests("ab", 2).values())), 1)

    def test_runs_on_the_same_hosts_at_the_same_time_do_not_meet(self):
        alone = Training(self.cluster, "hosts", "ab", settings=SHORT)
        self.assertEqual(alone.finish(PATIENCE_S).codes, [0])
        # Ranks of "variables" have one MASTER_PORT, and no name but the job's and the user's secret.
        ways = ["hosts", "variables"] * 5
        runs = [Training(self.cluster, way, "ab", settings=SHORT, name=f"run-{number}",
                         environment={"LOCKSTEP_SECRET": str(number)} if way == "variables" else None)
                for number, way in enumerate(ways)]
        for way, run in zip(ways, runs):
            ended = run.finish(PATIENCE_S)
            self.assertEqual(set(ended.codes), {0}, f"{way}: {ended}")
            self.assertEqual(run.digest(), alone.digest(), way)

    def test_tcp_names_the_rank_and_the_host_that_a_cut_link_takes_away(self):
        training = Training(self.cluster, "variables", "abc", settings=ENDLESS)
        self.assertTrue(training.wait_for_step(2, PATIENCE_S), "it did not come to step 2")
        self.addCleanup(self.cluster.link, "b", cut=False)
        self.cluster.link("b", cut=True)
        ended = training.finish(PATIENCE_S)
        self.assertEqual(ended.codes, [7, 7, 7], ended)
        self.assertRegex(ended.texts[0], r"rank 1 \(process \d+ on b\) did not arrive within 5.0 s", ended)

    def lost_frames(self):
        return sum(direction["dropped"] for host in self.cluster.counts().values() for direction in host.values())

    def test_ranks_that_send_at_the_same_time_lose_nothing_at_a_small_switch(self):
        """Where a system learns of a queue from losses alone, as Linux does by default."""
        for host in "abc":
            self.addCleanup(self.cluster.congestion, host, self.cluster.congestion(host))
            self.cluster.congestion(host, "reno")
            self.cluster.link(host, rate=1e9)
            self.addCleanup(self.cluster.link, host, rate=0)
        before = self.lost_frames()
        ended = Training(self.cluster, "variables", "abc", settings=HEAVY, job=TREE / "configs/synthetic_mlp.pbtxt").finish(PATIENCE_S)
        self.assertEqual(ended.codes, [0, 0, 0], ended)
        self.assertEqual(self.lost_frames() - before, 0)

    def lose_power(self, host, hosts, **how):
        """The output of a launcher where that host loses its power: it ends, and nothing goes on where there is power."""
        training = Training(self.cluster, "hosts", hosts, settings=ENDLESS, **how)
        self.assertTrue(training.wait_for_step(2, PATIENCE_S), "it did not come to step 2")
        others = set("abc") - {host}
        for other in others & set(hosts):
            self.assertIn("lockstep", self.processes_on(other))
        self.addCleanup(self.cluster.power, host, True)
        self.cluster.power(host, False)
        ended = training.finish(PATIENCE_S)
        self.assertEqual(ended.codes, [7], ended)
        for other in others:
            self.assertEqual(self.left_on(other), "", ended)
        return ended.texts[0]

    def test_a_launcher_of_hosts_ends_where_one_of_them_has_lost_its_power(self):
        self.assertRegex(self.lose_power("b", "abc"), "host b no longer answers, at step|" + MISSED)

    def test_a_launcher_of_hosts_through_mpi_ends_where_one_of_them_has_lost_its_power(self):
        self.assertRegex(self.lose_power("b", "abc", options=("--transport", "mpi")), "host b no longer answers, at step|" + MISSED)

    def test_hosts_that_are_told_different_transports_end_in_time(self):
        """Each host's rank has a value of its own, which mpirun alone would not make."""
        told = self.cluster.state / "shared/told"
        told.write_text(f"""#!/bin/sh
[ $(hostname) != b ] || export LOCKSTEP_TRANSPORT=$TRANSPORT_OF_B
exec {LOCKSTEP} "$@"
""")
        told.chmod(0o755)
        for of_a, of_b, code, words in (
                ("tcp", "mpi", 2, 'LOCKSTEP_TRANSPORT is "mpi" on rank 1, and rank 0 uses tcp'),
                ("mpi", "tcp", 2, 'LOCKSTEP_TRANSPORT is "tcp" on rank 1, and rank 0 uses mpi'),
                ("", "tcp", 2 if has_rdma() else 0, "")):
            variables = {"TRANSPORT_OF_B": of_b, **({"LOCKSTEP_TRANSPORT": of_a} if of_a else {})}
            ended = Training(self.cluster, "mpirun", "ab", settings=SHORT, environment=variables,
                             of_mpirun=("-x", "TRANSPORT_OF_B"), lockstep="/shared/told").finish(PATIENCE_S)
            self.assertEqual(ended.codes, [code], f"{of_a} and {of_b}: {ended}")
            self.assertIn(words or "through TCP between hosts", ended.texts[0], ended)

    def test_a_rank_that_does_not_come_is_missed_in_time(self):
        waits = self.cluster.state / "shared/waits"
        waits.write_text(f"""#!/bin/sh
[ $(hostname) != b ] || sleep {PATIENCE_S}
exec {LOCKSTEP} "$@"
""")
        waits.chmod(0o755)
        ended = Training(self.cluster, "mpirun", "ab", settings=(*SHORT, "comm.timeout_s=5"), lockstep="/shared/waits").finish(PATIENCE_S)
        self.assertEqual(ended.codes, [7], ended)
        self.assertIn("a rank that the launcher has started did not arrive within 5.0 s", ended.texts[0], ended)
        self.assertLess(ended.seconds, PATIENCE_S / 2, ended)

    def test_a_rank_of_another_host_that_is_killed_is_named_with_the_step(self):
        ended = Training(self.cluster, "hosts", "ab", settings=(*ENDLESS, "fault={kill{step:25 rank:1}}")).finish(PATIENCE_S)
        self.assertEqual(ended.codes, [7], ended)
        self.assertRegex(ended.texts[0], r"rank 1 was killed \(signal 9\) at step 2[456]\n", ended)

    def test_a_launcher_on_another_host_names_the_one_that_has_lost_its_power(self):
        self.assertIn("host c no longer answers", self.lose_power("c", "bc", launcher="a"))

    def test_a_launcher_that_may_not_watch_a_host_ends_after_the_rank_that_misses_it(self):
        programs = self.cluster.state / "shared/programs"
        programs.mkdir()
        (programs / "ssh").write_text('''#!/bin/sh
case "$1" in -nNTxa) echo no way; exit 255;; esac >&2
exec /usr/bin/ssh "$@"
''')
        (programs / "ssh").chmod(0o755)
        told = self.lose_power("b", "abc", environment={"PATH": f"/shared/programs:{PATH}"})
        self.assertIn("host b is not watched, since ssh does not lead there: no way", told)
        self.assertRegex(told, MISSED)
        self.assertNotIn("Segmentation fault", told)

    def on(self, host, *command):
        result = self.cluster.run(host, *command)
        self.assertEqual(result.returncode, 0, result.stderr)

    def assert_no_start(self, hosts, why, **how):
        """A launcher tells in one sentence why no rank has started, with mpirun's own words where it is asked for them."""
        for options in ((), ("--verbose",)):
            training = Training(self.cluster, "hosts", hosts, settings=SHORT, options=options, **how)
            ended = training.finish(PATIENCE_S)
            self.assertEqual(ended.codes, [3], ended)
            text = ended.texts[0]
            self.assertIn(f"\n  mpirun could not start the ranks: {why}\n", text, ended)
            begin = text.index("lockstep: error (environment, exit 3)\n")
            record = json.loads((training.run_dir / "summary.json").read_text())["error"]
            self.assertEqual(record["message"], f"mpirun could not start the ranks: {why}")
            self.assertEqual(text[:begin], record["mpirun"] if options else "", ended)

    def test_a_launcher_says_why_a_host_starts_no_rank(self):
        self.assert_no_start(("a", "nosuch"), "host nosuch is unknown: its name has no address")
        shut = "Host shut\n  HostName c\n  Port 2222\n"
        self.on("a", "sh", "-c", f"echo '{shut}' >> /etc/ssh/ssh_config")
        self.assert_no_start(("a", "shut"), "host c takes no ssh connection: Connection refused")
        self.on("a", "cp", LOCKSTEP, "/local/lockstep")
        self.assert_no_start("ab", "host b has no program /local/lockstep that it may run", ranks_a_host=2,
                             lockstep="/local/lockstep")

    def processes_on(self, host):
        return self.cluster.run(host, "pgrep", "-l", "-x", "lockstep|mpirun|orted|ssh").stdout

    def left_on(self, host):
        """What of a training goes on there, after a moment."""
        end = time.monotonic() + 10
        while (found := self.processes_on(host)) and time.monotonic() < end:
            time.sleep(0.1)
        return found


if __name__ == "__main__":
    if reason := missing() or unreachable():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
