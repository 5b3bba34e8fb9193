#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""On networks that do not lead where they seem to, ranks start or end with an error within seconds that says so; with
--interface they start where any network would do; `lockstep doctor --hosts` finds the network. LOCKSTEP_BINARY is the
command."""
import json
import os
import subprocess
import sys
import time
import unittest

from cluster import Cluster, missing
from trainings import LOCKSTEP, Training, unreachable

SHORT = ("train.steps=6", "schedule=unset", "train.eval_every=0", "comm.timeout_s=5")
GOOD, DEAD, DOCKER = "10.77.0.0/24", "10.79.0.0/24", "172.17.0.0/16"
PATIENCE_S = 60
# From the start of the ranks: the timeout, twice a second until one may speak, and what the launcher then tries.
LIMIT_S = 30


class OnNetworks(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(f"networks-test-{os.getpid()}")
        self.addCleanup(self.cluster.down)
        self.cluster.up(2)

    def on(self, host, *command):
        result = self.cluster.run(host, *command)
        self.assertEqual(result.returncode, 0, f"{command} on {host}: {result.stderr}")
        return result.stdout

    def add_docker(self, host):
        """As a container engine leaves it while it runs nothing."""
        self.on(host, "ip", "link", "add", "docker0", "type", "bridge")
        self.on(host, "ip", "address", "add", "172.17.0.1/16", "dev", "docker0")
        self.on(host, "ip", "link", "set", "docker0", "up")

    def add_dead_network(self, host, number):
        """An interface that is up, with a link, and nobody behind it."""
        self.on(host, "ip", "link", "add", "eth1", "type", "veth", "peer", "name", "nobody")
        self.on(host, "ip", "address", "add", f"10.79.0.{number}/24", "dev", "eth1")
        for name in ("eth1", "nobody"):
            self.on(host, "ip", "link", "set", name, "up")

    def close_ports(self, host, *others):
        """All but those of ssh and the others, which may be ranges."""
        ways = [f"-p tcp --{end} {port} -j ACCEPT" for port in (22, *others) for end in ("dport", "sport")]
        for rule in (*ways, "-i eth0 -j DROP"):
            self.on(host, "iptables", "-A", "INPUT", *rule.split())

    def train(self, way, **how):
        return Training(self.cluster, way, "ab", settings=SHORT, **how).finish(PATIENCE_S)

    def starts_or_says_why(self, way, *words, **how):
        """It trains, or ends in time with the words and leaves nothing."""
        ended = self.train(way, **how)
        if ended.codes != [0]:
            self.assertEqual(ended.codes, [7], ended)
            self.assertLess(ended.seconds, LIMIT_S, ended)
            for word in words:
                self.assertRegex(ended.texts[0], word, ended)
        self.nothing_is_left(ended)
        return ended

    def trains(self, way, **how):
        ended = self.train(way, **how)
        self.assertEqual(ended.codes, [0], ended)

    def nothing_is_left(self, ended):
        end = time.monotonic() + 20
        while any(left := [self.cluster.run(host, "pgrep", "-l", "-x", "lockstep|mpirun|orted|prted|ssh").stdout
                           for host in "ab"]) and time.monotonic() < end:
            time.sleep(0.1)
        self.assertEqual(left, ["", ""], ended)

    def doctor(self, hosts, *options):
        since = time.monotonic()
        result = self.cluster.run("a", LOCKSTEP, "doctor", "--hosts", hosts, "--json", *options)
        return result.returncode, json.loads(result.stdout), time.monotonic() - since

    @staticmethod
    def missing_in(found):
        return "\n".join(finding["missing"] for finding in found["findings"])

    THROUGH_GOOD = {f"{way}{through}": {"options": ("--interface", GOOD), "of_mpirun": of_mpirun}
                    for way, of_mpirun in (("hosts", ()), ("mpirun", ("--mca", "oob_tcp_if_include", GOOD)))
                    for through in (" over TCP", " through MPI")}

    def test_a_container_engines_bridge_with_the_same_address_on_both_hosts(self):
        for host in "ab":
            self.add_docker(host)
        for way in ("hosts through MPI", "mpirun through MPI"):
            self.starts_or_says_why(way, r"docker0 172\.17\.0\.1/16(, no link)?, inside this host", "--interface")
        for way in ("hosts over TCP", "mpirun over TCP"):
            self.trains(way)
        for way, how in self.THROUGH_GOOD.items():
            self.trains(way, **how)
        code, found, _ = self.doctor("a,b")
        self.assertEqual((code, found["use"]), (3, GOOD))
        self.assertEqual(self.missing_in(found), f"addresses of their own in {DOCKER}: 172.17.0.1 is that of docker0 of a "
                                                 "and docker0 of b")
        self.assertEqual(self.doctor("a,b", "--interface", GOOD)[0], 0)

    def test_a_second_network_that_leads_nowhere(self):
        for number, host in enumerate("ab", start=1):
            self.add_dead_network(host, number)
        words = (r"start of the run in channel \"world\": rank 1 did not arrive within 5\.0 s, as rank 0 \(process \d+ on a\)",
                 r"The networks of a are\n +eth0 10\.77\.0\.1/24\n", r"eth1 10\.79\.0\.1/24\n", "--interface")
        for way in ("hosts through MPI", "mpirun through MPI"):
            self.starts_or_says_why(way, *words)
        for way in ("hosts over TCP", "mpirun over TCP"):
            self.trains(way)
        for way, how in self.THROUGH_GOOD.items():
            self.trains(way, **how)
        code, found, _ = self.doctor("a,b")
        self.assertEqual((code, found["use"]), (3, GOOD))
        self.assertRegex(self.missing_in(found), rf"a connection from a to b through {DEAD} \(10\.79\.0\.2: ")

    def test_a_firewall_that_lets_ssh_alone_pass(self):
        self.close_ports("b")
        ended = self.starts_or_says_why("hosts", r"no rank has started within 15 s: mpirun's daemons on b have not connected",
                                        r"missing: a connection from b to a at a free port \(Connection timed out\)")
        self.assertEqual(ended.codes, [7], ended)
        code, found, seconds = self.doctor("a,b")
        self.assertEqual((code, found["use"]), (3, None))
        self.assertRegex(self.missing_in(found), r"a connection from a to b at a free port .*\n.*from b to a at a free port")
        self.assertLess(seconds, LIMIT_S)

    def test_a_firewall_that_lets_the_named_ports_pass(self):
        """Those of ranks, and where mpirun starts them those of its daemons."""
        for host in "ab":
            self.close_ports(host, "20000:20016", "20100:20120")
        ports = {"LOCKSTEP_MASTER_PORT": "20000"}
        ended = Training(self.cluster, "variables", "ab", settings=SHORT, environment=ports).finish(PATIENCE_S)
        self.assertEqual(ended.codes, [0, 0], ended)
        # Of Open MPI 4 and of 5.
        for name in ("OMPI_MCA_oob_tcp_dynamic_ipv4_ports", "PRTE_MCA_prte_dynamic_ipv4_ports"):
            ports[name] = "20100-20120"
        for way in ("hosts over TCP", "mpirun over TCP"):
            self.trains(way, environment=ports, of_mpirun=("-x", "LOCKSTEP_MASTER_PORT"))

    def test_doctor_finds_nothing_wrong_between_hosts_that_reach_each_other(self):
        code, found, _ = self.doctor("a,b")
        self.assertEqual((code, found["findings"], found["use"]), (0, [], GOOD))
        measured = [way for way in found["ways"] if way["mbit_per_s"]]
        self.assertTrue(measured)
        for way in measured:
            self.assertEqual((way["from"], way["to"], way["mtu"]), ("a", "b", 1500))
            self.assertGreater(way["latency_us"], 0)
        self.assertLess(abs(found["hosts"][1]["clock_ms"]), 1000)

    def test_doctor_names_a_host_that_is_off_and_tries_the_rest(self):
        code, found, seconds = self.doctor("a,b,c")
        self.assertEqual((code, found["use"]), (3, GOOD))
        self.assertRegex(self.missing_in(found), "^ssh to c without a password: ")
        self.cluster.power("b", False)
        code, found, seconds = self.doctor("a,b")
        self.assertEqual(code, 3)
        self.assertRegex(self.missing_in(found), "^(ssh to b without a password: |an answer of b within 8 s)")
        self.assertLess(seconds, LIMIT_S)

    def test_an_interface_that_a_host_lacks_is_refused_with_those_that_it_has(self):
        result = subprocess.run([*self.cluster.entrance("a"), str(LOCKSTEP), "train", "configs/digits_convnet.pbtxt", "--hosts",
                                 "a,b", "--interface", "eth7"], capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn('there is no interface and no network "eth7" on a, which has\n    lo 127.0.0.1/8\n    eth0 10.77.0.1/24\n',
                      result.stderr)

    def test_ranks_over_tcp_connect_through_the_chosen_network(self):
        for number, host in enumerate("ab", start=1):
            self.add_dead_network(host, number)
        ended = Training(self.cluster, "variables", "ab", settings=SHORT, options=("--interface", "eth0")).finish(PATIENCE_S)
        self.assertEqual(ended.codes, [0, 0], ended)
        ended = Training(self.cluster, "variables", "ab", settings=SHORT, options=("--interface", "eth1")).finish(PATIENCE_S)
        self.assertEqual(ended.codes, [7, 7], ended)
        self.assertIn("MASTER_ADDR must lead to that network", ended.texts[1])


if __name__ == "__main__":
    if reason := missing() or unreachable():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
