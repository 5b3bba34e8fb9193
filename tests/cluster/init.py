#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first process of a cluster: it starts the hosts, is the switch between them and answers scripts/cluster.

All that a cluster has lies in namespaces that end with this process. Its one argument is JSON: state (the cluster's
folder), tree (the repository), hosts (names), second (whether there is a second network).
"""
import json
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

from cluster import children
from switch import Switch

HOST = Path(__file__).resolve().with_name("host.py")
NAMESPACES = ("--net", "--pid", "--uts", "--ipc", "--mount", "--fork", "--kill-child")
FIRST, SECOND = "10.77.0.", "10.78.0."


def said(command):
    """Why a command fails; empty where it does not."""
    result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return (result.stderr.strip() or f"exit {result.returncode}") if result.returncode else ""


class Machines:
    def __init__(self, told):
        self.told = told
        self.state = Path(told["state"])
        self.addresses = {host: f"{FIRST}{number}" for number, host in enumerate(told["hosts"], start=1)}
        self.switch = Switch()
        self.processes = {}  # host -> Popen of unshare, in whose namespaces the host lives
        self.starting = {}  # channel -> host
        self.skipped = []
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        self.bridged = bool(told["second"]) and self.allowed("second network", ["ip", "link", "add", "second", "type", "bridge"])
        if self.bridged:
            subprocess.run(["ip", "link", "set", "second", "up"], check=True)

    def allowed(self, what, command):
        if problem := said(command):
            self.skipped.append(f"{what}: {' '.join(command)}: {problem}")
        return not problem

    def start(self, host):
        number = self.told["hosts"].index(host) + 1
        ours, theirs = socket.socketpair()
        told = {"name": host, "address": self.addresses[host], "mac": f"02:00:00:00:00:{number:02x}",
                "hosts": self.addresses, "state": self.told["state"], "tree": self.told["tree"], "channel": theirs.fileno()}
        command = ["unshare", *NAMESPACES, sys.executable, "-B", str(HOST), json.dumps(told)]
        self.processes[host] = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
                                                env={**os.environ, "LOCKSTEP_CLUSTER_HOST": host})
        theirs.close()
        self.starting[ours] = host

    def take_host(self, channel):
        """The host's own first process has made its device, or has ended."""
        host = self.starting.pop(channel)
        word, taps, _, _ = socket.recv_fds(channel, 16, 1)
        channel.close()
        if not word:
            self.processes.pop(host).wait()
            self.skipped.append(f"host {host} did not start; {self.state / 'log'} says why")
            return
        number = self.told["hosts"].index(host) + 1
        os.set_blocking(taps[0], False)
        self.switch.connect(host, bytes([2, 0, 0, 0, 0, number]), taps[0])
        if self.bridged:
            self.join_second(host, number)

    def join_second(self, host, number):
        pid = str(self.processes[host].pid)
        inside = ["nsenter", "--net", "--target", pid, "ip"]
        for command in (["ip", "link", "add", f"second-{host}", "type", "veth", "peer", "name", "eth1", "netns", pid],
                        ["ip", "link", "set", f"second-{host}", "master", "second", "up"],
                        [*inside, "address", "add", f"{SECOND}{number}/24", "dev", "eth1"],
                        [*inside, "link", "set", "eth1", "up"]):
            if not self.allowed(f"second network of {host}", command):
                return

    def power(self, host, on):
        """Off: the host is silent at once, before the system could say on its connections that it ends."""
        if on and host not in self.processes:
            self.start(host)
        elif not on and host in self.switch.taps:
            self.switch.disconnect(host)
            said(["ip", "link", "delete", f"second-{host}"])
            process = self.processes.pop(host)
            within = children(process.pid)
            process.kill()
            process.wait()
            # The host's first process is killed then and becomes this one's child. Before it has ended with all of its
            # own, it looks like a host's unshare.
            for pid in within:
                os.waitpid(pid, 0)

    def state_of(self, host):
        return "up" if host in self.switch.taps else "starting" if host in self.starting.values() else "off"

    def status(self):
        hosts = {host: {"address": address, "state": self.state_of(host)} for host, address in self.addresses.items()}
        return {"hosts": hosts, "skipped": self.skipped}

    def answer(self, request):
        match request["do"]:
            case "link":
                self.switch.set(request["host"], request["directions"], request["settings"])
            case "power":
                self.power(request["host"], request["on"])
            case "counts":
                return {host: {name: lane.facts() for name, lane in lanes.items()} for host, lanes in self.switch.lanes.items()}
        return self.status()

    def serve(self, connection):
        with connection:
            connection.settimeout(1)
            try:
                request = json.loads(connection.makefile().readline())
                connection.sendall(json.dumps(self.answer(request)).encode())
            except (OSError, ValueError, KeyError) as problem:
                print(f"a request failed: {problem}", file=sys.stderr, flush=True)

    def run(self, listener, wakening):
        while True:
            sources = self.switch.sources()
            waited = [*sources, *self.starting, listener, wakening]
            ready, _, _ = select.select(waited, [], [], self.switch.patience())
            self.switch.deliver_due()
            for source in ready:
                if source is listener:
                    self.serve(listener.accept()[0])
                elif source is wakening:
                    wakening.recv(4096)
                    reap()
                elif source in self.starting:
                    self.take_host(source)
                elif sources[source] in self.switch.taps:
                    self.switch.take_from(sources[source])


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def main():
    told = json.loads(sys.argv[1])
    wakening, woken = socket.socketpair()
    for end in (wakening, woken):
        end.setblocking(False)
    signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    machines = Machines(told)
    for host in told["hosts"]:
        machines.start(host)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(machines.state / "control.new"))
        listener.listen()
        (machines.state / "control.new").rename(machines.state / "control")  # whoever finds it is answered
        machines.run(listener, wakening)


if __name__ == "__main__":
    main()
