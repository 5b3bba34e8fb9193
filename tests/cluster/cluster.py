# SPDX-License-Identifier: Apache-2.0
"""A cluster of hosts on one machine, as scripts/cluster and the tests see it."""
import json
import os
import shutil
import signal
import socket
import string
import subprocess
import sys
import time
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests/support"))
from processes import signal_marked, variables  # noqa: E402

STATES = Path("/run/lockstep-cluster")
MARK = "LOCKSTEP_CLUSTER"
NAMES = string.ascii_lowercase
NAMESPACES = ("unshare", "--net", "--pid", "--uts", "--ipc", "--mount", "--fork", "--kill-child", "--mount-proc")
KINDS = ("net", "pid", "uts", "ipc", "mnt")
COMMANDS = ("unshare", "nsenter", "ip", "ssh", "ssh-keygen", "/usr/sbin/sshd", "pgrep")
UP_S, DOWN_S, ANSWER_S = 60, 20, 20
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ClusterError(Exception):
    pass


def missing():
    """Why this machine can have no cluster; empty where it can."""
    if os.geteuid() != 0:
        return "needs root, for namespaces, mounts and devices"
    if lacking := [command for command in COMMANDS if not shutil.which(command)]:
        return f"{', '.join(lacking)} not installed: scripts/setup cluster"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "no /dev/net/tun, which TAP devices come from"
    layers = "mount -t tmpfs none /tmp && cd /tmp && mkdir a b c && mount -t overlay none c -o lowerdir=/,upperdir=a,workdir=b"
    tried = subprocess.run([*NAMESPACES, "sh", "-c", layers + " && ip tuntap add tried mode tap"], capture_output=True, text=True)
    return f"no namespaces with an overlay and a TAP device: {tried.stderr.strip()}" if tried.returncode else ""


def children(pid):
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def has_ended(pid):
    """Also where its parent has not taken note yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def namespaces(pid):
    found = set()
    for kind in KINDS:
        try:
            found.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
        except OSError:
            pass
    return found


class Held:
    """Namespaces of processes, held open: the number of one that is gone would be given to the next, of somebody else."""

    def __init__(self, pids):
        own = namespaces("self")
        self.descriptors = {}  # name -> descriptor
        for pid in pids:
            for kind in KINDS:
                try:
                    descriptor = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
                except OSError:
                    continue
                name = os.readlink(f"/proc/self/fd/{descriptor}")
                if name in own or name in self.descriptors:
                    os.close(descriptor)
                else:
                    self.descriptors[name] = descriptor

    def processes(self):
        """Numbers of those that are in any of them."""
        pids = (int(entry.name) for entry in os.scandir("/proc") if entry.name.isdecimal())
        return [pid for pid in pids if namespaces(pid) & self.descriptors.keys() and not has_ended(pid)]

    def close(self):
        while self.descriptors:
            os.close(self.descriptors.popitem()[1])


class Cluster:
    def __init__(self, name="cluster"):
        self.name = name
        self.state = STATES / name
        self.process = None

    # -- up and down

    def up(self, count, second=False):
        if not 1 <= count <= len(NAMES):
            raise ClusterError(f"{count} hosts: from 1 to {len(NAMES)}")
        if reason := missing():
            raise ClusterError(reason)
        if self.pid():
            raise ClusterError(f"the cluster {self.name} is up: scripts/cluster --name {self.name} down")
        self.down()
        self.make_state(NAMES[:count])
        told = {"state": str(self.state), "tree": str(TREE), "hosts": list(NAMES[:count]), "second": second}
        command = [*NAMESPACES, sys.executable, "-B", str(Path(__file__).with_name("init.py")), json.dumps(told)]
        with open(self.state / "log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                            cwd="/", env={"PATH": PATH, "LANG": "C.UTF-8", MARK: str(self.state)})
        # The system shows the variables of a program a moment after it has started.
        while self.process.poll() is None and not variables(self.process.pid):
            time.sleep(0.001)
        (self.state / "pid").write_text(str(self.process.pid))
        try:
            self.wait_for(NAMES[:count])
        except BaseException:
            self.down()
            raise
        return self.status()

    def make_state(self, hosts):
        for folder in ("shared", "root", *(f"local/{host}" for host in hosts)):
            (self.state / folder).mkdir(parents=True)
        for key in ("cluster_host", "cluster_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", key, "-f", str(self.state / key)], check=True)

    def wait_for(self, hosts):
        end = time.monotonic() + UP_S
        while True:
            status = self.status() if (self.state / "control").exists() else None
            states = [status["hosts"][host]["state"] for host in hosts] if status else ["starting"]
            if set(states) == {"up"}:
                return
            if "off" in states or time.monotonic() > end or not self.pid():
                reasons = "; ".join(status["skipped"]) if status else "its first process has ended or does not answer"
                raise ClusterError(f"the cluster did not start: {reasons}\n{(self.state / 'log').read_text()}")
            time.sleep(0.02)

    def down(self):
        """Ends all of the cluster, and returns when nothing of it is left."""
        held = self.hold()
        try:
            if self.process:
                self.process.kill()
                self.process.wait(DOWN_S)
                self.process = None
            elif pid := self.pid():
                signal_marked(pid, MARK, str(self.state), signal.SIGKILL)
            self.wait_for_end(held)
        finally:
            held.close()
        shutil.rmtree(self.state, ignore_errors=True)

    def wait_for_end(self, held):
        end = time.monotonic() + DOWN_S
        while left := self.leftovers(held):
            if time.monotonic() > end:
                raise ClusterError("left over: " + "; ".join(left))
            time.sleep(0.02)

    def pid(self):
        """The process that all others hang on; None where the cluster is down."""
        try:
            pid = int((self.state / "pid").read_text())
        except (FileNotFoundError, ValueError):
            return None
        return pid if variables(pid).get(MARK) == str(self.state) else None

    def hold(self):
        """The namespaces of all hosts and of the switch."""
        pids = [pid] if (pid := self.pid()) else []
        for pid in pids:
            pids += children(pid)
        return Held(pids)

    def leftovers(self, held):
        """Processes and mounts that are there."""
        mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()]
        return ([f"process {pid}" for pid in held.processes()]
                + [f"mount {mount}" for mount in mounts if mount.startswith(f"{self.state}/")])

    # -- what its first process answers

    def ask(self, **request):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(ANSWER_S)
            try:
                connection.connect(str(self.state / "control"))
                connection.sendall(json.dumps(request).encode() + b"\n")
                text = connection.makefile().read()
            except OSError as problem:
                raise ClusterError(f"the cluster {self.name} does not answer ({problem}): scripts/cluster up N") from problem
        if not text:
            raise ClusterError(f"the cluster {self.name} refused {request}; {self.state / 'log'} says why")
        return json.loads(text)

    def status(self):
        return self.ask(do="status")

    def counts(self):
        return self.ask(do="counts")

    def link(self, host, directions=("out", "in"), **settings):
        """rate: bits a second, 0: as fast as the machine; delay: seconds; loss: the share of frames; cut: whether nothing
        passes. Each direction, as the host sees it, has its own."""
        self.ask(do="link", host=self.known(host), directions=list(directions), settings=settings)

    def power(self, host, on):
        self.ask(do="power", host=self.known(host), on=on)
        if on:
            self.wait_for([host])

    def known(self, host):
        hosts = self.status()["hosts"]
        if host not in hosts:
            raise ClusterError(f"no host {host}; there are {', '.join(hosts)}")
        return host

    # -- commands on its hosts

    def entrance(self, host, folder=TREE, **environment):
        """The words before a command that is to run on the host as root, as if it had been started there."""
        for first in children(self.pid() or 0):
            for wrapper in children(first):
                if variables(wrapper).get("LOCKSTEP_CLUSTER_HOST") == host and children(wrapper):
                    return ["nsenter", "--target", str(children(wrapper)[0]), *(f"--{kind}" for kind in
                            ("mount", "uts", "ipc", "net", "pid")), "env", "-i", "-C", str(folder), f"PATH={PATH}",
                            "HOME=/root", "LANG=C.UTF-8", *(f"{name}={value}" for name, value in environment.items())]
        raise ClusterError(f"no host {host} is up in the cluster {self.name}")

    def start(self, host, *command, folder=TREE, environment=None, **options):
        words = [*self.entrance(host, folder, **(environment or {})), *map(str, command)]
        return subprocess.Popen(words, **{"stdin": subprocess.DEVNULL, "text": True, **options})

    def run(self, host, *command, timeout=120, **options):
        with self.start(host, *command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
            try:
                output, errors = process.communicate(timeout=timeout)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(command, process.returncode, output, errors)

    def congestion(self, host, name=None):
        """The congestion control of the host's TCP, once it is `name`. A host begins with this machine's."""
        setting = "net.ipv4.tcp_congestion_control"
        if name and self.run(host, "sysctl", "-q", "-w", f"{setting}={name}").returncode:
            allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().strip()
            raise ClusterError(f"hosts may not use the congestion control {name}. Where this machine has it, allow it: "
                               f"sysctl -w net.ipv4.tcp_allowed_congestion_control='{allowed} {name}'")
        return self.run(host, "sysctl", "-n", setting).stdout.strip()
