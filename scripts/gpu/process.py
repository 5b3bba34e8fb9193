# SPDX-License-Identifier: Apache-2.0
"""Commands with a time limit, whose output is kept."""
import dataclasses
import os
import pathlib
import signal
import subprocess
import time


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


def stop(process):
    """Ends the process with all that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=5)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


running = set()


def stop_all():
    """What other threads are running."""
    for process in list(running):
        stop(process)


def run(command, limit=None, log=None, cwd=None, env=None):
    """Runs the command in a process group of its own; what it prints comes back as one text and into the file `log`."""
    command = [str(word) for word in command]
    start = time.monotonic()
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   cwd=cwd, env=env, start_new_session=True)
    except OSError as error:
        return Outcome(None, f"{command[0]}: {error.strerror}", 0.0)
    timed_out = False
    running.add(process)
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        timed_out = True
        stop(process)
        output, _ = process.communicate()
    except BaseException:
        stop(process)
        raise
    finally:
        running.discard(process)
    text = output.decode(errors="replace")
    if log:
        pathlib.Path(log).write_text(f"$ {' '.join(command)}\n{text}")
    return Outcome(None if timed_out else process.returncode, text, time.monotonic() - start, timed_out)
