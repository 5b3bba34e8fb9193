#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two hosts are machines of their own, the links between them do as they are told, and nothing of them is left."""
import faulthandler
import os
import signal
import sys
import time
import unittest
from pathlib import Path

from cluster import MARK, Cluster, ClusterError, missing
from processes import signal_marked

CONNECTS = "import socket, sys, time; t = time.time(); socket.create_connection((sys.argv[1], 22), float(sys.argv[2])); print(time.time() - t)"
SENDS = """import socket, sys
out = socket.create_connection((sys.argv[1], 7000)); out.sendall(bytes(int(sys.argv[2]))); out.shutdown(socket.SHUT_WR); out.recv(1)"""
TAKES = """import socket
with socket.create_server(("", 7000)) as at:
    print("listening", flush=True)
    came, _ = at.accept()
    while came.recv(1 << 20): pass"""
HEARS = """import socket
at = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); at.bind(("", 7001)); print("listening", flush=True)
count = 0
while at.recv(99) != b"end": count += 1
print(count)"""
SAYS = """import socket, sys, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(int(sys.argv[2])): out.sendto(b"word", (sys.argv[1], 7001)); time.sleep(0.0005)"""
ENDS = """import socket, sys
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); out.sendto(b"end", (sys.argv[1], 7001))"""


def interfaces():
    return set(os.listdir("/sys/class/net"))


def processes_of(state):
    """Those that were started with the cluster's variable."""
    found = []
    for entry in os.scandir("/proc"):
        try:
            if entry.name.isdecimal() and f"{MARK}={state}".encode() in Path(entry.path, "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


class Hosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(f"hosts-test-{os.getpid()}")
        cls.addClassCleanup(cls.cluster.down)
        cls.status = cls.cluster.up(2, second=True)

    def tearDown(self):
        for host in "ab":
            self.cluster.link(host, rate=0, delay=0, loss=0, cut=False)

    def on(self, host, *command, **options):
        result = self.cluster.run(host, *command, **options)
        self.assertEqual(result.returncode, 0, f"{command} on {host}: {result.stderr}")
        return result.stdout.strip()

    def python(self, host, text, *arguments):
        return self.on(host, "python3", "-c", text, *arguments)

    def states(self, host):
        """Of its processes, a letter each: Z has ended, and nobody has taken note."""
        return self.on(host, "sh", "-c", "cat /proc/[0-9]*/stat 2> /dev/null | cut -d ' ' -f 3 | tr -d '\\n'")

    def listener(self, host, text):
        process = self.cluster.start(host, "python3", "-c", text, stdout=-1)
        self.addCleanup(process.communicate, timeout=60)
        self.assertEqual(process.stdout.readline(), "listening\n")
        return process

    def test_each_host_has_a_name_a_boot_id_processes_and_shared_memory_of_its_own(self):
        self.assertEqual([self.on(host, "hostname") for host in "ab"], ["a", "b"])
        ids = {self.on(host, "cat", "/proc/sys/kernel/random/boot_id") for host in "ab"}
        ids.add(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        self.assertEqual(len(ids), 3)
        self.on("a", "touch", "/dev/shm/mark", "/tmp/mark", "/usr/mark")
        for path in ("/dev/shm/mark", "/tmp/mark", "/usr/mark"):
            self.assertNotEqual(self.cluster.run("b", "test", "-e", path).returncode, 0, path)
            self.assertFalse(os.path.exists(path), path)
        self.assertIn("host.py", self.on("b", "cat", "/proc/1/cmdline"))

    def test_one_folder_is_shared_and_one_is_local(self):
        self.on("a", "sh", "-c", "echo here > /shared/word; echo mine > /local/word")
        self.assertEqual(self.on("b", "cat", "/shared/word"), "here")
        self.assertNotEqual(self.cluster.run("b", "test", "-e", "/local/word").returncode, 0)
        self.assertEqual((self.cluster.state / "local/a/word").read_text(), "mine\n")

    def test_the_sources_are_there_and_no_host_changes_them(self):
        self.assertNotEqual(self.cluster.run("a", "touch", "README.md").returncode, 0)
        self.on("a", "test", "-f", "README.md")

    def test_ssh_leads_from_one_to_the_other(self):
        self.assertEqual(self.on("a", "ssh", "b", "hostname; ssh a hostname").split(), ["b", "a"])

    def test_nothing_leads_out(self):
        self.assertEqual(self.on("a", "ip", "route", "show", "default"), "")

    def test_a_second_network_is_there_or_named_as_skipped(self):
        if self.status["skipped"]:
            self.assertIn("second network", self.status["skipped"][0])
        else:
            self.cluster.link("b", cut=True)
            self.python("a", CONNECTS, "10.78.0.2", 30)

    def test_a_delay_counts_on_the_way_there_and_back(self):
        self.cluster.link("b", delay=0.05)
        self.assertGreater(float(self.python("a", CONNECTS, "b", 60)), 0.1)

    def test_a_rate_is_not_passed_and_bytes_are_counted(self):
        before = self.cluster.counts()["b"]["in"]["bytes"]
        self.cluster.link("b", rate=16e6)
        taker = self.listener("b", TAKES)
        begin = time.monotonic()
        self.python("a", SENDS, "b", 1 << 20)
        took = time.monotonic() - begin
        taker.wait(60)
        self.assertGreater(took, (1 << 20) * 8 / 16e6)
        came = self.cluster.counts()["b"]["in"]["bytes"] - before
        self.assertGreater(came, 1 << 20)
        self.assertLess(came, 1.2 * (1 << 20))

    def test_a_share_of_the_frames_is_lost(self):
        self.cluster.link("b", loss=0.5)
        hearer = self.listener("b", HEARS)
        self.python("a", SAYS, "b", 1000)
        self.cluster.link("b", loss=0)
        self.python("a", ENDS, "b")
        heard = int(hearer.stdout.read())
        self.assertGreater(heard, 400)
        self.assertLess(heard, 600)

    def test_a_cut_holds_until_it_is_mended(self):
        self.cluster.link("b", cut=True)
        self.assertIn("timed out", self.cluster.run("a", "python3", "-c", CONNECTS, "10.77.0.2", 1).stderr)
        self.cluster.link("b", cut=False)
        self.python("a", CONNECTS, "b", 60)

    def test_a_cut_of_one_direction_leaves_the_other(self):
        self.python("a", CONNECTS, "b", 60)  # each knows the other's address
        self.cluster.link("a", ["in"], cut=True)
        before = self.cluster.counts()
        self.assertIn("timed out", self.cluster.run("a", "python3", "-c", CONNECTS, "10.77.0.2", 1).stderr)
        after = self.cluster.counts()
        self.assertGreater(after["b"]["in"]["frames"], before["b"]["in"]["frames"])
        self.assertEqual(after["a"]["in"]["frames"], before["a"]["in"]["frames"])

    def test_a_host_without_power_is_silent_and_starts_as_a_new_one(self):
        before = self.on("b", "cat", "/proc/sys/kernel/random/boot_id")
        self.on("b", "touch", "/tmp/mark", "/local/mark")
        self.addCleanup(self.cluster.power, "b", True)
        self.cluster.power("b", False)
        self.assertEqual(self.cluster.status()["hosts"]["b"]["state"], "off")
        with self.assertRaises(ClusterError):
            self.cluster.run("b", "true")
        self.assertIn("timed out", self.cluster.run("a", "python3", "-c", CONNECTS, "10.77.0.2", 1).stderr)
        self.cluster.power("b", True)
        self.assertNotEqual(self.on("b", "cat", "/proc/sys/kernel/random/boot_id"), before)
        self.on("b", "test", "-e", "/local/mark")
        self.assertNotEqual(self.cluster.run("b", "test", "-e", "/tmp/mark").returncode, 0)
        self.assertEqual(self.on("a", "ssh", "b", "hostname"), "b")

    def test_a_process_left_to_the_host_is_taken_note_of(self):
        self.on("a", "sh", "-c", "(sh -c 'sleep 0.1' &)")
        end = time.monotonic() + 30
        while "Z" in self.states("a") and time.monotonic() < end:
            time.sleep(0.05)
        self.assertNotIn("Z", self.states("a"))

    def test_what_is_not_there_is_named(self):
        with self.assertRaisesRegex(ClusterError, "no host c; there are a, b"):
            self.cluster.link("c", cut=True)
        with self.assertRaisesRegex(ClusterError, "is up"):
            Cluster(self.cluster.name).up(1)
        with self.assertRaisesRegex(ClusterError, "does not answer"):
            Cluster(self.cluster.name + "-none").status()


class Down(unittest.TestCase):
    def setUp(self):
        self.before = interfaces()
        self.cluster = Cluster(f"down-test-{os.getpid()}")
        self.cluster.up(1)
        self.sleeper = self.cluster.start("a", "sleep", "1000")
        self.addCleanup(self.sleeper.wait, 60)
        self.held = self.cluster.hold()
        self.addCleanup(self.held.close)
        self.addCleanup(self.cluster.down)  # which the others wait for: it comes first

    def assert_nothing_left(self):
        self.assertEqual(processes_of(self.cluster.state), [])
        self.assertEqual(self.cluster.leftovers(self.held), [])
        self.assertEqual(interfaces(), self.before)
        self.assertNotIn(str(self.cluster.state), Path("/proc/self/mountinfo").read_text())

    def test_down_leaves_nothing(self):
        self.assertGreaterEqual(len(self.held.descriptors), 10)
        self.assertTrue(self.cluster.leftovers(self.held))
        self.cluster.down()
        self.assert_nothing_left()
        self.assertFalse(self.cluster.state.exists())

    def test_all_ends_with_the_first_process(self):
        signal_marked(self.cluster.pid(), MARK, str(self.cluster.state), signal.SIGKILL)
        self.cluster.process.wait(60)
        self.cluster.wait_for_end(self.held)
        self.assert_nothing_left()


if __name__ == "__main__":
    if reason := missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    faulthandler.dump_traceback_later(240, exit=True)  # says where it hangs; what ctest ends says nothing
    unittest.main()
