# SPDX-License-Identifier: Apache-2.0
"""What the tests of whole runs share: training through the command, and reading what a run leaves behind."""
import array
import ast
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import uuid
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
from processes import signal_marked, variables  # noqa: E402

LOCKSTEP = os.environ["LOCKSTEP_BINARY"]
CONFIGS = Path(__file__).resolve().parents[3] / "configs"
BY_RANK = str(Path(__file__).resolve().parents[2] / "support/by_rank")
DIGITS = CONFIGS / "digits_convnet.pbtxt"

FP32 = ("amp.opt_level=O0", "amp.dtype=FP32", "comm.wire_dtype=FP32")
SAVE_ALWAYS = ("checkpoint.every_steps=1", "checkpoint.keep=0")
# More lines than a pipe or a terminal holds, of steps that compute little.
TALKATIVE = ("train.log_every=1", "train.steps=1000", "checkpoint.every_steps=0", "train.eval_every=0",
             "model={ mlp { hidden: [1] } }", "data.global_batch=2")


HAS_MPI = os.environ.get("LOCKSTEP_MPI_FOLDER") != "no_mpi"
# What a test runs on where one rank and several are to behave alike.
RANK_COUNTS = (1, 2) if HAS_MPI else (1,)


def require_mpi():
    """Skips a test that starts ranks with --nproc or mpirun, in a build without MPI."""
    if not HAS_MPI:
        raise unittest.SkipTest("this build has no MPI")


def mpirun_of(*commands):
    """The command that starts a rank of each of these."""
    started = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(len(commands)), BY_RANK]
    for rank, command in enumerate(commands):
        started += ["--next"] * min(rank, 1) + [*command]
    return started


def faults(*kinds_and_points):
    """faults("overflow", "step:3 rank:1", "kill", "step: 5") as a setting."""
    pairs = zip(kinds_and_points[::2], kinds_and_points[1::2])
    return "fault=[" + ", ".join("{%s{%s}}" % pair for pair in pairs) + "]"


def read_tensors(path):
    """The float32 tensors of a safetensors file by name."""
    content = path.read_bytes()
    size = struct.unpack_from("<Q", content)[0]
    header = json.loads(content[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = array.array("f", content[begin:end])
    return tensors


def read_npy(path):
    """The dtype, the shape and the numbers of a .npy file of version 1.0."""
    content = path.read_bytes()
    size = int.from_bytes(content[8:10], "little")
    header = ast.literal_eval(content[10:10 + size].decode())
    code = {"<f4": "f", "<i8": "q", "|u1": "B", "<i4": "i"}[header["descr"]]
    return header["descr"], header["shape"], array.array(code, content[10 + size:])


def npy(descr, shape, content):
    """A .npy file of version 1.0."""
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + content


def png_of_rows(rows, channels):
    """Grey or RGB; `rows`: the bytes of each."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    header = struct.pack(">2I5B", len(rows[0]) // channels, len(rows), 8, 0 if channels == 1 else 2, 0, 0, 0)
    content = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", content) + chunk(b"IEND", b"")


def png(width, height, pixel):
    """`pixel` gives the red, green and blue at (x, y)."""
    return png_of_rows([b"".join(bytes(pixel(x, y)) for x in range(width)) for y in range(height)], 3)


def read_png(path):
    """Width and rows of a grey, RGB or RGBA image."""
    content, at, data = path.read_bytes(), 8, b""
    width, height, _, color = struct.unpack_from(">IIBB", content, 16)
    step = {0: 1, 2: 3, 6: 4}[color]
    size = step * width
    while at < len(content):
        length = struct.unpack_from(">I", content, at)[0]
        if content[at + 4:at + 8] == b"IDAT":
            data += content[at + 8:at + 8 + length]
        at += 12 + length
    data, rows, above = zlib.decompress(data), [], bytearray(size)
    for y in range(height):
        kind, row = data[y * (size + 1)], bytearray(data[y * (size + 1) + 1:(y + 1) * (size + 1)])
        for i, value in enumerate(row):
            left, up, corner = (row[i - step] if i >= step else 0), above[i], (above[i - step] if i >= step else 0)
            nearest = min((left, up, corner), key=lambda each: abs(left + up - corner - each))
            row[i] = (value + (0, left, up, (left + up) // 2, nearest)[kind]) % 256
        rows.append(row)
        above = row
    return width, rows


class Run:
    """A run's directory after its process has ended."""

    def __init__(self, directory, code=0, output="", seconds=0.0):
        self.directory = directory
        self.code = code
        self.output = output
        self.seconds = seconds

    @property
    def lines(self):
        path = self.directory / "metrics.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []

    @property
    def steps(self):
        return [line for line in self.lines if "event" not in line]

    def column(self, name):
        return [step[name] for step in self.steps]

    def step(self, number):
        return self.steps[number - 1]

    @property
    def summary(self):
        return json.loads((self.directory / "summary.json").read_text(encoding="utf-8"))

    @property
    def digest(self):
        return self.summary["weights_digest"]

    @property
    def checkpoints(self):
        return sorted((self.directory / "checkpoints").glob("step-????????"))

    def checkpoint(self, step):
        return self.directory / "checkpoints" / f"step-{step:08}"

    def tensors(self, step=None):
        checkpoint = self.checkpoints[-1] if step is None else self.checkpoint(step)
        return read_tensors(checkpoint / "tensors.safetensors")


class LiveRun:
    """A run whose processes can be looked at and signalled."""

    def __init__(self, command, directory, limit=None):
        self.directory = directory
        self.mark = uuid.uuid4().hex
        self.begin = time.monotonic()
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                        env={**os.environ, "LOCKSTEP_TEST_RUN": self.mark},
                                        preexec_fn=limit and (lambda: resource.setrlimit(limit[0], (limit[1],) * 2)))

    def ranks(self):
        """Process ids by rank. Empty until the ranks are started."""
        found = {}
        for process in filter(str.isdecimal, os.listdir("/proc")):
            entries = variables(process)
            if entries.get("LOCKSTEP_TEST_RUN") == self.mark and "OMPI_COMM_WORLD_RANK" in entries:
                found[int(entries["OMPI_COMM_WORLD_RANK"])] = int(process)
        return found

    def newest_step(self):
        names = [path.name for path in (self.directory / "checkpoints").glob("step-????????")]
        return max((int(name.removeprefix("step-")) for name in names), default=0)

    def wait_for_step(self, step):
        """Returns whether the run got there before it ended."""
        while self.newest_step() < step:
            if self.process.poll() is not None:
                return False
            time.sleep(0.001)
        return True

    def wait_for_output(self, text):
        """Returns whether the run printed it before it ended."""
        # The log's offset is the run's, too.
        while text.encode() not in os.pread(self.log.fileno(), 1 << 20, 0):
            if self.process.poll() is not None:
                return False
            time.sleep(0.001)
        return True

    def kill(self, *ranks):
        """SIGKILL."""
        processes = self.ranks()
        for rank in ranks:
            if rank in processes:
                signal_marked(processes[rank], "LOCKSTEP_TEST_RUN", self.mark, signal.SIGKILL)

    def finish(self):
        code = self.process.wait()
        self.log.seek(0)
        written = self.log.read()
        size = os.fstat(self.log.fileno()).st_size
        self.log.close()
        try:
            output = written.decode()
        except UnicodeDecodeError:
            raise AssertionError(f"exit {code}, {size} bytes of output, which is not text: {written}") from None
        return Run(self.directory, code, output, time.monotonic() - self.begin)


class RunTest(unittest.TestCase):
    """Tests that train in a folder of their own."""

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="lockstep-test-")))

    def command(self, name, *settings, resume="auto", job=DIGITS, device="cpu"):
        command = [LOCKSTEP, "train", str(job), "--run-dir", str(self.folder / name), "--resume", str(resume),
                   "--device", device]
        for setting in settings:
            command += ["--set", setting]
        return command

    def start(self, name, *settings, ranks=1, options=(), limit=None, **where):
        command = self.command(name, *settings, **where) + list(options)
        if ranks > 1:
            require_mpi()
            command += ["--nproc", str(ranks)]
        return LiveRun(command, self.folder / name, limit)

    def train(self, name, *settings, code=0, **options):
        """Trains in a folder of that name and expects the exit code."""
        run = self.start(name, *settings, **options).finish()
        self.assertEqual(run.code, code, run.output)
        return run

    def assert_close(self, actual, expected, tolerance, message=""):
        worst = max((abs(a - b) / (1 + abs(b)) for a, b in zip(actual, expected, strict=True)), default=0.0)
        self.assertLessEqual(worst, tolerance, message)

    def assert_same_to_rounding(self, run, reference, tolerance):
        """Losses and all that a checkpoint holds: weights, optimizer state, running statistics."""
        self.assert_close(run.column("loss"), reference.column("loss"), tolerance, "losses")
        tensors = run.tensors()
        expected = reference.tensors()
        self.assertEqual(tensors.keys(), expected.keys())
        for name, values in tensors.items():
            self.assert_close(values, expected[name], tolerance, name)


class CarriedTest(RunTest):
    """Tests of runs that are used in a folder of their own, without their job and their data."""

    def setUp(self):
        super().setUp()
        self.home = self.folder / "home"
        self.away = self.folder / "away"
        self.away.mkdir(parents=True)
        (self.home / "data").mkdir(parents=True)

    def trained(self, text, *settings, **options):
        """A run of this job, once its job and its data are gone."""
        job = self.home / "job.pbtxt"
        job.write_text(text, encoding="utf-8")
        run = self.train("run", *settings, job=job, **options)
        shutil.move(run.directory, self.away / "run")
        shutil.rmtree(self.home)
        return self.away / "run"

    def call(self, *arguments, code=0):
        done = subprocess.run([LOCKSTEP, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=self.away)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr
