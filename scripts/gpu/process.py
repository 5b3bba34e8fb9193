# SPDX-License-Identifier: Apache-2.0
"""Commands with a time limit, whose output is kept."""
import dataclasses
import os
import signal
import subprocess
import threading
import time
from math import inf


@dataclasses.dataclass
class Outcome:
    """How a command ended. `code` is None where it was stopped at its limit or could not be started."""

    code: int | None
    output: str
    seconds: float
    timed_out: bool = False

    @property
    def ok(self):
        return self.code == 0

    def why(self):
        """One line for a report."""
        if self.timed_out:
            return f"stopped after {self.seconds:.0f} s"
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        last = lines[-1][:300] if lines else "no output"
        return last if self.code is None else f"ended with {self.code}: {last}"


class Processes:
    """What runs now. Once all are stopped nothing more is started: threads that wait for one must not go on."""

    def __init__(self):
        self.lock = threading.RLock()  # a signal may end all while the same thread starts one
        self.running = set()
        self.stopped = False

    def start(self, command, **options):
        """A subprocess.Popen in a session, and so a process group, of its own; None where all are stopped."""
        with self.lock:
            if self.stopped:
                return None
            process = subprocess.Popen([str(word) for word in command], start_new_session=True, **options)
            self.running.add(process)
            return process

    def end(self, process, grace=3):
        """Ends a process of start() with all that it has started."""
        signal_group(process, signal.SIGTERM)
        until = time.monotonic() + grace
        # It is waited for at the very end: until then its number, and so its group's, is its own.
        while not has_ended(process) and time.monotonic() < until:
            time.sleep(0.02)
        signal_group(process, signal.SIGKILL)
        try:
            process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            pass  # it hangs in the kernel
        self.forget(process)

    def forget(self, process):
        with self.lock:
            self.running.discard(process)

    def end_all(self):
        with self.lock:
            self.stopped = True
            left = list(self.running)
        for process in left:
            signal_group(process, signal.SIGTERM)
        for process in left:
            self.end(process, grace=1)


def has_ended(process):
    """Whether it has, without taking note of it."""
    if process.returncode is not None:
        return True
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # another thread takes note of it
        return True


def signal_group(process, number):
    """To the group that Processes.start() has made for this process; nothing once it has been waited for."""
    if process.returncode is None and process.pid > 1:
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass


processes = Processes()


class Output:
    """What a process prints, as it comes, in memory and in a file."""

    def __init__(self, stream, log):
        self.stream, self.lines, self.last, self.log = stream, [], time.monotonic(), log
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for line in self.stream:
            self.last = time.monotonic()
            self.lines.append(line)
            log = self.log  # None once nobody waits for more
            if log:
                log.write(line)

    def text(self):
        # Whoever has left the process's group may hold the other end for ever.
        self.thread.join(timeout=2)
        if not self.thread.is_alive():
            self.stream.close()
        self.log = None
        return b"".join(list(self.lines)).decode(errors="replace")


def run(command, limit=None, log=None, cwd=None, env=None, silence=None):
    """Runs the command in a process group of its own; what it prints comes back as one text and into the file `log`. It
    is stopped after `limit` seconds, and after `silence` seconds without a line."""
    words = " ".join(str(word) for word in command)
    start = time.monotonic()
    with open(log or os.devnull, "wb", buffering=0) as file:
        file.write(f"$ {words}\n".encode())
        try:
            process = processes.start(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, cwd=cwd, env=env)
        except OSError as error:
            return Outcome(None, f"{command[0]}: {error.strerror}", 0.0)
        if process is None:
            return Outcome(None, "not started", 0.0, True)
        output = Output(process.stdout, file)
        timed_out = False
        try:
            while not timed_out:
                now = time.monotonic()
                left = min(inf if limit is None else start + limit - now,
                           inf if silence is None else output.last + silence - now)
                timed_out = left <= 0
                try:
                    process.wait(timeout=max(0, min(1, left)))
                    break
                except subprocess.TimeoutExpired:
                    continue
            timed_out = process.returncode is None
            if timed_out:
                processes.end(process)
        except BaseException:
            processes.end(process, grace=1)
            raise
        finally:
            processes.forget(process)
        text = output.text()
    stopped = timed_out or processes.stopped
    return Outcome(None if stopped else process.returncode, text, time.monotonic() - start, stopped)
