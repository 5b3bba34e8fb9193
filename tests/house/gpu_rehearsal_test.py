# SPDX-License-Identifier: Apache-2.0
"""What docs/gpu.md has done on a machine that is there for half an hour, rehearsed where there is no GPU: a pack of this
build's programs on the emulated GPU, and the calls as the page writes them, with the real CTest, Open MPI and loader.

What stands in, and why: nvidia-smi, as there is no driver, and nvcc where it is packed; step_bench, gpu_bench
and, for the bench, the command, since the bench's jobs take a CPU minutes a step; compute-sanitizer is left away, since it
runs with a GPU alone."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
STAND_INS = pathlib.Path(__file__).resolve().parent / "gpu_stand_ins"
BIN = pathlib.Path(os.environ["LOCKSTEP_BIN_DIR"])
MPIEXEC = os.environ["LOCKSTEP_MPIEXEC"]
# The names that a GPU's build gives to programs, with those that compute on the emulated GPU.
PROGRAMS = {"lockstep": "lockstep_emulated", "tensor_test": "tensor_emulated_test", "step_ranks": "step_ranks_emulated"}
QUICK = "GpuStream.*:GpuGraph.*"


def calls_of_the_page():
    """[words] of each call of a packed gpu_check that the page writes out."""
    page = (ROOT / "docs/gpu.md").read_text()
    return [line.split() for line in re.findall(r"^scripts/gpu_check (--packed .*)$", page, re.MULTILINE)]


def gtest_names(program, chosen):
    output = subprocess.run([program, f"--gtest_filter={chosen}", "--gtest_list_tests"], check=True, capture_output=True,
                            text=True).stdout
    names, suite = [], ""
    for line in output.splitlines():
        if line.startswith("  "):
            names.append(suite + line.split("#")[0].strip())
        elif line.endswith("."):
            suite = line
    return names


@unittest.skipUnless(MPIEXEC and shutil.which("ompi_info"), "a pack carries Open MPI, which this build is without")
class Rehearsal(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.build = self.folder / "build"
        (self.build / "bin").mkdir(parents=True)
        for name, emulated in PROGRAMS.items():
            shutil.copy(BIN / emulated, self.build / "bin" / name)
        self.stand_in(self.build, "step_bench")
        self.stand_in(self.build, "gpu_bench")
        for name in ("nvidia-smi", "nvcc"):
            self.program(self.folder / "stand_ins" / name, (STAND_INS / f"{name}.py").read_text())
        self.write_build_files()

    def stand_in(self, build, name):
        """A program that knows all answers, which CMake's stand-in would make."""
        made = (STAND_INS / "cmake.py").read_text()
        self.program(build / "bin" / name,
                     re.search(rf'^{name.upper()} = """\n(.*?)"""', made, re.DOTALL | re.MULTILINE)[1])

    def program(self, file, text):
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!{sys.executable} -S\n{text}")
        file.chmod(0o755)

    def write_build_files(self):
        """What CMake leaves in a build with CUDA."""
        (self.build / "CMakeCache.txt").write_text("CUDA_cublasLt_LIBRARY:FILEPATH=/cuda/libm.so.6\n"
                                                   f"_Python3_EXECUTABLE:INTERNAL={sys.executable}\n")
        (self.build / "tests").mkdir()
        (self.build / "CTestTestfile.cmake").write_text("subdirs(tests)\n")
        program = self.build / "bin/tensor_test"
        self.quick = gtest_names(program, QUICK)
        lines = []
        for name in self.quick:
            lines += [f'add_test("tensor.{name}" "{program}" "--gtest_filter={name}")',
                      f'set_tests_properties("tensor.{name}" PROPERTIES LABELS gpu TIMEOUT 120)']
        command = [ROOT / "tests/support/watchdog", "--limit", "200", MPIEXEC, "--allow-run-as-root", "--oversubscribe",
                   "--bind-to", "none", "-n", 2, self.build / "bin/step_ranks", "--gtest_filter=GraphOfRanks.*"]
        lines += ["add_test(step.cuda_2_ranks " + " ".join(f'"{word}"' for word in command) + ")",
                  'set_tests_properties(step.cuda_2_ranks PROPERTIES LABELS "mpi;gpu" TIMEOUT 290 ENVIRONMENT '
                  '"OMP_NUM_THREADS=1;LOCKSTEP_TEST_DEVICE=cuda")']
        (self.build / "tests/CTestTestfile.cmake").write_text("\n".join(lines) + "\n")

    def check(self, *arguments):
        command = [sys.executable, ROOT / "scripts/gpu_check", "--out", self.folder / "out", *arguments]
        env = {**os.environ, "PATH": f"{self.folder}/stand_ins:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
        done = subprocess.run([str(word) for word in command], env=env, capture_output=True, text=True, timeout=570)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def report(self):
        return json.loads((self.folder / "out/report.json").read_text())

    def test_the_calls_of_the_page_run_a_pack_one_after_the_other(self):
        file = self.folder / "lockstep.pack"
        self.check("--pack", file, "--built", "--build", self.build)
        shutil.rmtree(self.build)  # what runs is what was packed
        (self.folder / "stand_ins/nvcc").unlink()
        calls = calls_of_the_page()
        self.assertEqual([call[call.index("--parts") + 1] for call in calls], ["quick,sanitizers", "ranks", "bench"])
        build = self.folder / "there/build"
        there = ("--build", build, "--python", self.folder / "no-python", "--rounds", 1)
        for call in calls:
            if "bench" in call:
                self.stand_in(build, "lockstep")
            self.check(*(file if word == "build/lockstep.pack" else word for word in call), *there)
        found = self.report()
        self.assertEqual(found["failures"], [])
        self.assertEqual([call["parts"] for call in found["calls"]], [["quick", "sanitizers"], ["ranks"], ["bench"]])
        self.assertEqual((found["tests"]["quick"]["passed"], found["tests"]["quick"]["skipped"]), (len(self.quick), []))
        self.assertEqual((found["tests"]["ranks"]["passed"], found["tests"]["ranks"]["skipped"]), (1, []))
        self.assertIsNone(found["doctor"]["problem"])
        self.assertEqual(found["sanitizers"]["skipped"], "compute-sanitizer is not installed")
        self.assertIn("PyTorch", [item["what"] for item in found["bench"]["skipped"]])
        self.assertIn("step, Lockstep, graph", [row["what"] for row in found["bench"]["rows"]])
        self.assertLess(sum(int(call[call.index("--time") + 1]) for call in calls), 30 * 60)


if __name__ == "__main__":
    unittest.main()
