# SPDX-License-Identifier: Apache-2.0
"""Programs that wait for their turn: tests/bench/step_bench.cpp, tests/bench/pytorch_gpu.py and pytorch_models.py.

Once warmed up they print a JSON line, and then one for each line that they read, after a round of steps.
"""
import json
import queue
import subprocess
import threading

from gpu.process import processes


class Peer:
    """After the first failure `problem` says why, and nothing more is asked of it."""

    def __init__(self, name, command, env, log, keep=True):
        self.name, self.log = name, log
        self.ready, self.rounds, self.problem = None, [], None
        with open(log, "w") as errors:
            self.process = processes.start(command, env=env, text=True,
                                           stdin=subprocess.PIPE if keep else subprocess.DEVNULL,
                                           stdout=subprocess.PIPE, stderr=errors)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                self.lines.put(line)
        self.lines.put(None)

    def _answer(self, limit):
        try:
            line = self.lines.get(timeout=max(limit, 0.1))
        except queue.Empty:
            self.problem = f"no answer within {max(limit, 0):.0f} s"
            line = None
        else:
            if line is None:
                errors = [text for text in self.log.read_text(errors="replace").splitlines() if text.strip()]
                self.problem = errors[-1][:300] if errors else f"ended with {self.process.wait()}"
        if line is None:
            self.close()
            return None
        return json.loads(line)

    def wait_ready(self, limit):
        self.ready = self._answer(limit)

    def take_turn(self, limit=60):
        self.start_turn()
        self.end_turn(limit)

    def start_turn(self):
        if self.problem:
            return
        try:
            self.process.stdin.write("round\n")
            self.process.stdin.flush()
        except OSError:
            pass  # its end says why

    def end_turn(self, limit=60):
        result = None if self.problem else self._answer(limit)
        if result:
            self.rounds.append(result)

    def close(self):
        if self.process.stdin:
            try:
                self.process.stdin.close()
            except OSError:
                pass
        try:
            # It has answered, or never will.
            self.process.wait(timeout=10 if not self.problem else 0.1)
        except subprocess.TimeoutExpired:
            processes.end(self.process)
        processes.forget(self.process)
