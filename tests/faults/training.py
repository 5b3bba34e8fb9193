# SPDX-License-Identifier: Apache-2.0
"""The short training that every try injures: its job, its processes, and what has to hold after it."""
import ctypes
import hashlib
import json
import os
import re
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from processes import signal_marked, variables  # noqa: E402

MARK = "LOCKSTEP_FAULTS_RUN"
# What the marks of all runs of this campaign begin with; those of a campaign within a campaign begin with both.
CAMPAIGN = os.environ.get(MARK, "") + uuid.uuid4().hex
TORCHRUN = Path(__file__).resolve().parents[1] / "support" / "torchrun_ranks"
HAS_MPI = os.environ.get("LOCKSTEP_MPI_FOLDER") != "no_mpi"
STEPS = 4
JOB = """\
name: "faults"
seed: 7
model { mlp { hidden: 8 dropout: 0.1 } }
data {
  global_batch: 8
  train { idx { images: "images" labels: "labels" } }
  eval { idx { images: "images" labels: "labels" } }
}
amp { opt_level: O1 dtype: FP16 }
optimizer { sgd { lr: 0.02 momentum: 0.9 } }
train { steps: 4 eval_every: 2 }
checkpoint { every_steps: 2 keep: 1 best: "eval.loss" }
"""
SAMPLES, SIDE = 40, 4
# What an exit code may be: docs/command-line.md.
DOCUMENTED = (0, 2, 3, 4, 5, 6, 7, 75)

SURVIVED, WRONG, LOST, MISSED = "survived", "wrong", "lost", "missed"


@dataclass
class Result:
    """What a try came to. MISSED: the fault had no occasion, and the try does not count."""
    outcome: str
    text: str = ""

    @staticmethod
    def of(problems):
        """Survived unless there is a problem; what begins with "lost" is a lost checkpoint or wrong weights."""
        problems = [problem for problem in problems if problem]
        if not problems:
            return Result(SURVIVED)
        lost = any(problem.startswith("lost") for problem in problems)
        return Result(LOST if lost else WRONG, "; ".join(problems))


@dataclass
class Ended:
    """A run whose processes are gone."""
    code: int
    output: str
    seconds: float
    peak_bytes: int
    left: list = field(default_factory=list)  # command lines of processes that outlived it
    hung: bool = False

    def saved(self):
        """The newest step that it has said to be saved, 0 without."""
        return max((int(step) for step in re.findall(r"saved at step (\d+) in", self.output)), default=0)

    def resumed(self):
        steps = re.findall(r"resuming from \S*step-(\d{8})", self.output)
        return int(steps[-1]) if steps else 0

    def problems(self):
        """What is wrong whatever was injected."""
        if self.hung:
            yield f"no end after {self.seconds:.0f} s"
        if self.left:
            yield "left processes: " + ", ".join(self.left)

    def told(self):
        return "\n".join("    | " + line for line in self.output.splitlines()[-12:])


def adopt_orphans():
    """Makes this process the parent of those whose own parent ends, so that none is overlooked."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def marked(mark):
    """Process ids of all that run with a mark that begins so."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdecimal())
    return [pid for pid in pids if variables(pid).get(MARK, "").startswith(mark)]


def end_all_runs():
    """Kills what the campaign has started and waits for it. adopt_orphans() comes before the first one."""
    try:
        while True:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                for pid in marked(CAMPAIGN):
                    signal_marked(pid, MARK, CAMPAIGN, signal.SIGKILL)
                time.sleep(0.005)
    except ChildProcessError:
        pass


class LiveRun:
    """A command and all that it starts, in a session of its own. `stdout`: a descriptor; without one it goes into the
    log, as stderr does."""

    def __init__(self, command, environment, log, limits=(), stdout=None):
        self.mark = CAMPAIGN + uuid.uuid4().hex
        self.log = log
        self.begin = time.monotonic()

        def set_limits():
            for which, value in limits:
                resource.setrlimit(which, (value, value))

        with open(log, "wb") as output:
            self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                            stdout=output if stdout is None else stdout, stderr=output,
                                            start_new_session=True,
                                            preexec_fn=set_limits if limits else None,
                                            env={**os.environ, **environment, MARK: self.mark})
        self.pidfd = os.pidfd_open(self.process.pid)

    def output(self):
        return Path(self.log).read_bytes().decode(errors="replace")

    def over(self, seconds=0):
        """Whether it ends within so many seconds."""
        return bool(select.select([self.pidfd], [], [], max(seconds, 0))[0])

    def processes(self):
        """Process ids of all that it has started and that still run, itself included."""
        return marked(self.mark)

    def signal(self, pid, number):
        signal_marked(pid, MARK, self.mark, number)

    def is_named(self, pid, *names):
        return os.path.basename(self._command_line(pid).split(" ")[0]) in names

    def _command_line(self, pid):
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ").strip()[:80]
        except OSError:
            return "?"

    def _reap_orphans(self, grace):
        """Command lines of processes that are still there after the grace, which are killed then."""
        end = time.monotonic() + grace
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] != 0:
                    continue
            except ChildProcessError:
                return []
            if time.monotonic() > end:
                break
            time.sleep(0.005)
        left = []
        for pid in self.processes():
            left.append(f"{pid} {self._command_line(pid)}")
            self.signal(pid, signal.SIGKILL)
        return left + self._reap_orphans(grace) if left else []

    def finish(self, limit, grace=5):
        """Waits for its end; past the limit all is killed."""
        hung = not self.over(limit - (time.monotonic() - self.begin))
        if hung:
            for pid in self.processes():
                self.signal(pid, signal.SIGKILL)
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        os.close(self.pidfd)
        seconds = time.monotonic() - self.begin
        left = self._reap_orphans(grace)
        return Ended(self.process.returncode, self.output(), seconds, usage.ru_maxrss * 1024, left, hung)


class Workshop:
    """Where tries happen: a scratch folder with the job, its data, and what it trains to undisturbed."""

    def __init__(self, bin_folder, folder, patience):
        self.lockstep = Path(bin_folder) / "lockstep"
        self.shim = Path(bin_folder) / "lockstep_faults.so"
        self.folder = Path(folder)
        self.patience = patience
        self.job = self.folder / "job.pbtxt"
        self.journal = self.folder / "journal"
        self.scene = self.folder / "scene"  # holds the run directory alone
        self.run_dir = self.scene / "run"
        self.job.write_text(JOB)
        self.write_data(self.folder)
        self._digests = {}
        self._bests = {}

    @staticmethod
    def write_data(folder):
        count = SAMPLES * SIDE * SIDE
        (folder / "images").write_bytes(struct.pack(">IIII", 0x803, SAMPLES, SIDE, SIDE)
                                        + bytes(i * 37 % 251 for i in range(count)))
        (folder / "labels").write_bytes(struct.pack(">II", 0x801, SAMPLES) + bytes(i % 3 for i in range(SAMPLES)))

    def clear(self):
        shutil.rmtree(self.scene, ignore_errors=True)
        self.scene.mkdir()
        self.journal.unlink(missing_ok=True)

    def train_command(self, ranks=1, settings=(), options=(), tcp=()):
        """`tcp`: options of torchrun_ranks, whose ranks meet over TCP."""
        command = [self.lockstep, "train", self.job, "--run-dir", self.run_dir, "--device", "cpu", *options]
        for setting in settings:
            command += ["--set", setting]
        if tcp:
            return [sys.executable, TORCHRUN, *tcp, ranks, *command]
        return command + (["--nproc", ranks] if ranks > 1 else [])

    def start(self, command, environment=None, shim=False, **how):
        """`shim`: whether file calls go through it, and into the journal. `how`: of LiveRun."""
        extra = {"OMP_NUM_THREADS": "1", **(environment or {})}
        if shim:
            extra.update(LD_PRELOAD=str(self.shim), LOCKSTEP_FAULTS_FOLDER=str(self.scene),
                         LOCKSTEP_FAULTS_JOURNAL=str(self.journal))
        return LiveRun(command, extra, self.folder / "log", **how)

    def train(self, ranks=1, environment=None, shim=False, limit=60, **how):
        return self.start(self.train_command(ranks, **how), environment, shim=shim).finish(limit * self.patience)

    def in_summary(self, key):
        try:
            return json.loads((self.run_dir / "summary.json").read_text())[key]
        except (OSError, ValueError, KeyError):
            return None

    def digest_of_run(self):
        return self.in_summary("weights_digest")

    def digest(self, ranks, settings=()):
        """What the training comes to undisturbed."""
        key = (ranks, settings)
        if key not in self._digests:
            self.clear()
            ended = self.train(ranks, settings=settings)
            self._digests[key] = self.digest_of_run()
            self._bests[key] = self.best_of_run()
            if ended.code != 0 or not self._digests[key]:
                raise RuntimeError(f"the training fails undisturbed (exit {ended.code}):\n{ended.output}")
        return self._digests[key]

    def newest_checkpoint(self):
        """The step of the newest one that lies under its final name, 0 without."""
        names = [path.name for path in (self.run_dir / "checkpoints").glob("step-????????")]
        return max((int(name.removeprefix("step-")) for name in names), default=0)

    def best_of_run(self):
        """The newest checkpoint in best/ and its weights, None without."""
        newest = max((self.run_dir / "best").glob("step-????????"), default=None)
        return newest and (newest.name, hashlib.sha256((newest / "tensors.safetensors").read_bytes()).hexdigest())

    def temporaries(self):
        return sorted(str(path.relative_to(self.run_dir)) for path in self.run_dir.rglob("*") if ".tmp" in path.name)

    def memory_left(self):
        """Files of shared memory that the journal tells of and that are still there."""
        if not self.journal.exists():
            return []
        paths = {line.split("\t")[3] for line in self.journal.read_text(errors="replace").splitlines()
                 if line.split("\t")[1:2] == ["memory"]}
        # The OpenMP library of clang leaves a file of its own when its process is killed.
        return sorted(path for path in paths if os.path.exists(path) and "__KMP_REGISTERED_LIB_" not in path)

    def goes_on(self, ranks=1, floor=0, settings=(), metrics=False, best=True, **how):
        """Problems of the same command run again, which has to end at the bits of a training undisturbed. `floor`: the
        newest checkpoint that must not be lost. `metrics`: whether every step has to have its line. `best`: whether
        best/ has to hold the same weights."""
        expected = self.digest_kept(ranks, settings)
        ended = self.train(ranks, settings=settings, **how)
        yield from ended.problems()
        if ended.code != 0:
            yield f"run again, it ends with {ended.code}\n{ended.told()}"
            return
        if ended.resumed() < floor:
            yield f"lost: it resumes from step {ended.resumed()}, and step {floor} was saved"
        if self.digest_of_run() != expected:
            yield f"lost: the weights differ: {self.digest_of_run()}, not {expected}"
        if best and self.best_of_run() != self._bests[ranks, settings]:
            yield f"lost: best/ differs: {self.best_of_run()}, not {self._bests[ranks, settings]}"
        yield from self.untidy()
        steps = self.steps_in_metrics()
        if steps != sorted(set(steps)) or (metrics and steps != list(range(1, self.in_summary("steps") + 1))):
            yield f"metrics.jsonl has steps {steps}"

    def digest_kept(self, ranks, settings):
        if (ranks, settings) not in self._digests:
            raise RuntimeError("digest() comes first, since it clears the scene")
        return self._digests[ranks, settings]

    def untidy(self):
        if left := self.temporaries():
            yield "temporaries are left: " + ", ".join(left)
        if left := self.memory_left():
            yield "shared memory is left: " + ", ".join(left)

    def steps_in_metrics(self):
        steps = []
        for line in (self.run_dir / "metrics.jsonl").read_text(errors="replace").splitlines():
            try:
                entry = json.loads(line)
                if "event" not in entry:
                    steps.append(entry["step"])
            except (ValueError, KeyError, TypeError):
                continue
        return steps
