# SPDX-License-Identifier: Apache-2.0
"""PyTorch as a program that waits for its turn: tests/bench/pytorch_gpu.py."""
import json
import os
import queue
import subprocess
import threading
import time

from gpu.process import stop


class Peer:
    """One workload in one mode. After the first failure `problem` says why, and nothing more is asked of it."""

    def __init__(self, python, script, workload, mode, log, cache, keep=True):
        self.workload, self.mode, self.log = workload, mode, log
        self.ready, self.rounds, self.problem = None, [], None
        # What was compiled and tuned once is found again by the next start.
        env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [python, script, "--workload", workload, "--mode", mode, "--started", time.time()]
        self.process = subprocess.Popen([str(word) for word in command], env=env, text=True, start_new_session=True,
                                        stdin=subprocess.PIPE if keep else subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=open(log, "w"))
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
            self.problem = f"no answer within {limit:.0f} s"
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
        if self.problem:
            return
        try:
            self.process.stdin.write("round\n")
            self.process.stdin.flush()
        except OSError:
            pass  # its end says why
        result = self._answer(limit)
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
            stop(self.process)
