#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first process of a host: it makes the host's root, devices and network in its own namespaces, starts sshd, hands
the TAP device to the switch and takes note of the end of processes that were left to it.

Its one argument is JSON: name, address, mac, hosts (name -> address), state (the cluster's folder), tree (the
repository), channel (a socket to the switch's process).
"""
import array
import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from pathlib import Path

from switch import open_tap

# Of the machine's own they hide what is in them; each with its mode.
OWN_FOLDERS = {"tmp": "1777", "run": "755", "root": "700", "dev": "755"}
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
SSHD = """Port 22
HostKey /etc/ssh/cluster_host
AuthorizedKeysFile /etc/ssh/cluster_key.pub
PermitRootLogin yes
PasswordAuthentication no
StrictModes no
UsePAM no
UseDNS no
MaxStartups 200
PidFile none
"""
SSH = """Host *
  IdentityFile /etc/ssh/cluster_key
  GlobalKnownHostsFile /dev/null
  UserKnownHostsFile /dev/null
  StrictHostKeyChecking no
  LogLevel ERROR
"""


def call(*command):
    subprocess.run([str(word) for word in command], check=True, stdin=subprocess.DEVNULL)


def mount(source, target, kind=None, options=None):
    call("mount", *(["-t", kind] if kind else []), *(["-o", options] if options else []), source, target)


def bind(source, target, options="bind"):
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.touch()
    mount(source, target, options=options)


def make_root(state, name, tree):
    """The machine's own root under a layer in memory, without the homes and temporary files of its users."""
    layers = state / "root"
    mount("none", layers, "tmpfs", "mode=755")
    root = layers / "root"
    for folder in ("changes", "work", "root"):
        (layers / folder).mkdir()
    mount("none", root, "overlay", f"lowerdir=/,upperdir={layers / 'changes'},workdir={layers / 'work'}")
    for folder, mode in OWN_FOLDERS.items():
        mount("none", root / folder, "tmpfs", f"mode={mode}")
    make_devices(root / "dev")
    mount("none", root / "proc", "proc")
    mount("none", root / "sys", "sysfs", "ro")
    (root / "run/boot_id").write_text(f"{uuid.uuid4()}\n")
    mount(root / "run/boot_id", root / "proc/sys/kernel/random/boot_id", options="bind")
    bind(state / "shared", root / "shared")
    bind(state / "local" / name, root / "local")
    inside = root / tree.relative_to("/")
    bind(tree, inside, "rbind")
    mount("none", inside, options="remount,bind,ro")
    return root


def make_devices(folder):
    for device in DEVICES:
        bind(Path("/dev") / device, folder / device)
    for subfolder in ("shm", "pts"):
        (folder / subfolder).mkdir()
    mount("none", folder / "shm", "tmpfs", "mode=1777")
    mount("none", folder / "pts", "devpts", "newinstance,ptmxmode=0666,mode=620")
    for link, target in (("ptmx", "pts/ptmx"), ("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"),
                         ("stderr", "fd/2")):
        (folder / link).symlink_to(target if target.startswith("/") or link == "ptmx" else f"/proc/self/{target}")


def write_settings(root, state, name, hosts):
    etc = root / "etc"
    (etc / "hostname").write_text(name + "\n")
    (etc / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{address} {host}\n" for host, address in hosts.items()))
    (etc / "resolv.conf").unlink(missing_ok=True)
    (etc / "resolv.conf").write_text("")  # whom nobody here answers is not asked
    for file, mode in (("cluster_host", 0o600), ("cluster_key", 0o600), ("cluster_key.pub", 0o644)):
        (etc / "ssh" / file).write_bytes((state / file).read_bytes())
        (etc / "ssh" / file).chmod(mode)
    (etc / "ssh/cluster_sshd").write_text(SSHD)
    (etc / "ssh/ssh_config").write_text(SSH)
    (root / "run/sshd").mkdir()


def enter(root):
    """The old root goes: nothing of it holds a mount."""
    os.chdir(root)
    call("pivot_root", ".", ".")
    call("umount", "-l", ".")
    os.chdir("/")


def make_network(address, mac):
    tap = open_tap("eth0")
    call("ip", "link", "set", "lo", "up")
    # Addresses of version 6 would come seconds later, and are not asked for.
    call("ip", "link", "set", "eth0", "address", mac, "addrgenmode", "none", "up")
    call("ip", "address", "add", f"{address}/24", "dev", "eth0")
    return tap


def reap():
    # Whoever came before the signals were blocked is taken note of as well.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        signal.sigwait([signal.SIGCHLD])


def main():
    told = json.loads(sys.argv[1])
    state, name = Path(told["state"]), told["name"]
    channel = socket.socket(fileno=told["channel"])
    channel.set_inheritable(False)
    socket.sethostname(name)
    tap = make_network(told["address"], told["mac"])
    root = make_root(state, name, Path(told["tree"]))
    write_settings(root, state, name, told["hosts"])
    enter(root)
    call("/usr/sbin/sshd", "-f", "/etc/ssh/cluster_sshd")
    channel.sendmsg([b"ready"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [tap]))])
    channel.close()
    os.close(tap)
    reap()


if __name__ == "__main__":
    main()
