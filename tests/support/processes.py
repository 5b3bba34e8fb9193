# SPDX-License-Identifier: Apache-2.0
"""Signals to processes that a test has started, but not as its children: for those there is Popen.send_signal()."""
import os
import signal


def variables(pid):
    """The environment that a process was started with; empty where it has ended or is somebody else's."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            entries = file.read().decode(errors="replace").split("\0")
    except OSError:
        return {}
    # Of a process that is about to end the file can be read, and is empty.
    return dict(entry.partition("=")[::2] for entry in entries if entry)


def signal_marked(pid, name, value, number):
    """Signals a process that was started with this environment variable, or one that begins so, which nobody else's has;
    does nothing where it has ended. Raises ValueError, and sends nothing, for any other: to kill(), 0 and negative
    numbers are groups of processes, and 1 is the machine's first one."""
    if pid <= 1:
        raise ValueError(f"process {pid} gets no signal: this is not the number of one process")
    try:
        descriptor = os.pidfd_open(pid)  # first, so that what is checked is what gets the signal
    except ProcessLookupError:
        return
    try:
        found = variables(pid)
        if found and not (value and found.get(name, "").startswith(value)):
            raise ValueError(f"process {pid} gets no signal: it was not started with {name}={value}...")
        if found:
            signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        pass
    finally:
        os.close(descriptor)
