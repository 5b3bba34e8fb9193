# SPDX-License-Identifier: Apache-2.0
"""Tests of scripts/gpu_check as a whole, on a machine made of stand-ins."""
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from gpu import build  # noqa: E402

STAND_INS = pathlib.Path(__file__).resolve().parent / "gpu_stand_ins"


def wait_for(file):
    """The file's content, once it is there."""
    while not file.exists() or not file.read_text():
        time.sleep(0.02)
    return file.read_text()


class WholeCheck(unittest.TestCase):
    """scripts/gpu_check with stand-ins for the GPU's driver, CMake, CTest, compute-sanitizer and PyTorch's Python."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "bin").mkdir()
        for name in ("nvidia-smi", "nvcc", "cmake", "ctest", "compute-sanitizer", "ompi_info", "python-with-torch"):
            file = self.folder / "bin" / name
            file.write_text(f"#!{sys.executable} -S\n" + (STAND_INS / f"{name}.py").read_text())
            file.chmod(0o755)
        (self.folder / "deps").mkdir()
        (self.folder / "deps/environment").write_text("export FROM_DEPS=1\n")

    def command(self, *arguments, **environment):
        command = [sys.executable, ROOT / "scripts/gpu_check", "--out", self.folder / "out",
                   "--build", self.folder / "kept/build", "--deps", self.folder / "deps",
                   "--python", self.folder / "bin/python-with-torch", *arguments]
        env = {**os.environ, "PATH": f"{self.folder}/bin:/usr/bin:/bin",
               "STAND_IN_KERNELS_TEST": str(STAND_INS / "kernels_test.py"), "STAND_IN_ROOT": str(ROOT),
               "STAND_IN_MPI": str(self.folder / "mpi"), **environment}
        return {"args": [str(word) for word in command], "env": env}

    def check(self, *arguments, without=(), **environment):
        for name in without:
            (self.folder / "bin" / name).unlink()
        return subprocess.run(**self.command(*arguments, **environment), capture_output=True, text=True, timeout=120)

    def report(self):
        self.assertEqual(sorted(path.name for path in (self.folder / "out").iterdir()),
                         ["logs.tgz", "report.json", "report.md"])
        return json.loads((self.folder / "out/report.json").read_text())

    def test_all_well_ends_with_0_and_a_report(self):
        done = self.check("--bench", "--rounds", "2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = self.report()
        self.assertEqual((found["status"], found["failures"]), ("passed", []))
        self.assertEqual(found["host"]["devices"][0]["compute_capability"], "9.0")
        self.assertEqual((found["tests"]["quick"]["passed"], found["tests"]["ranks"]["passed"]), (1, 1))
        self.assertEqual([test["name"] for test in found["tests"]["quick"]["skipped"]], ["kernels_cuda.Conv.Skips"])
        self.assertEqual(found["tests"]["others"]["passed"], 2)
        self.assertEqual([tool["tests"] for tool in found["sanitizers"]["tools"]], [2, 2, 2])
        whats = [row["what"] for row in found["bench"]["rows"]]
        self.assertIn("step, Lockstep, no graph", whats)
        self.assertIn("PyTorch compile's step / Lockstep's", whats)
        self.assertIn("step, PyTorch eager", whats)
        self.assertIn("test accuracy, two ranks", whats)
        gpt2 = [row["what"] for row in found["bench"]["rows"] if row["table"].startswith("GPT-2")]
        self.assertIn("step, Lockstep, graph, untuned", gpt2)
        # Both sides untuned come before the first choice by timing.
        self.assertLess(whats.index("step, Lockstep, graph, untuned"), whats.index("step, Lockstep, graph"))
        text = (self.folder / "out/report.md").read_text()
        self.assertIn("| GPU 0 | NVIDIA H200", text)
        self.assertIn("## MLP", text)

    def test_without_pytorch_the_bench_says_so(self):
        done = self.check("--bench", "--rounds", "1", "--quick", STAND_IN_TORCH="")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("PyTorch", [item["what"] for item in self.report()["bench"]["skipped"]])

    def test_a_finding_and_a_failed_test_end_with_1(self):
        done = self.check(STAND_IN_FINDING="racecheck", STAND_IN_FAILED_TEST="1",
                          STAND_IN_TESTS="Breaks:Crashes:Works")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        found = self.report()
        self.assertEqual(found["status"], "failed")
        self.assertTrue(any(text.startswith("racecheck: Error: Race reported") for text in found["failures"]))
        self.assertIn("test group.a+b: Failed", found["failures"])
        self.assertIn("test kernels_cuda.Conv.Breaks: Failed", found["failures"])
        self.assertIn("test kernels_cuda.Conv.Crashes: crashed: signal 6", found["failures"])
        for output in ("expected 1, found 2", "expected 3, found 4"):
            self.assertIn(output, (self.folder / "out/report.md").read_text())

    def test_a_build_that_fails_is_reported(self):
        done = self.check(STAND_IN_BUILD="fails")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("build: not built: a.cu.o", self.report()["failures"])

    def test_a_bench_that_crashes_is_a_failure(self):
        done = self.check("--bench", "--rounds", "1", "--quick", STAND_IN_TRAIN="crashes")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertTrue(any("lockstep train configs/recipe_mlp.pbtxt" in text for text in self.report()["failures"]))

    def test_a_step_that_was_not_captured_is_a_failure(self):
        done = self.check("--parts", "build,bench", "--rounds", "1", STAND_IN_GRAPH_SHARE="0.5")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        found = self.report()
        self.assertIn("bench: step_bench, mlp, Lockstep, graph: not every step ran as a graph", found["failures"])
        self.assertNotIn("tests", found)
        resnet = found["bench"]["raw"]["steps"]["resnet50"]
        self.assertEqual({name: len(measured["rounds"]) for name, measured in resnet.items()},
                         {"Lockstep, graph, untuned": 1, "Lockstep, graph": 2, "Lockstep, no graph": 1, "PyTorch eager": 2,
                          "PyTorch compile": 1})

    def test_told_to_end_it_leaves_a_report_and_no_process(self):
        process = subprocess.Popen(**self.command(STAND_IN_BUILD="hangs"), stdout=subprocess.PIPE, text=True)
        for line in process.stdout:
            if line == "gpu_check: build ...\n":
                break
        child = int(wait_for(self.folder / "kept/build/pid"))
        process.terminate()
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 1)
        self.assertIn("build: broken off before its end", self.report()["failures"])
        self.assertIn("sanitizers: not begun", self.report()["failures"])
        self.assertFalse(pathlib.Path(f"/proc/{child}").exists())

    def test_the_time_holds_for_the_whole(self):
        for variables in ({"STAND_IN_BUILD": "hangs"}, {"STAND_IN_TESTS": "Works:Hangs"}):
            done = self.check("--time", "8", **variables)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertEqual(self.report()["status"], "failed")
            # Far from what hangs, whatever a busy machine needs to write.
            self.assertLess(self.report()["calls"][0]["seconds"], 60, done.stdout)

    def test_parts_called_one_after_the_other_make_one_report(self):
        self.assertEqual(self.check("--parts", "quick").returncode, 2)  # nothing is built yet
        outs = {}
        for parts in ("build,quick", "others", "bench", "sanitizers"):
            done = self.check("--parts", parts, "--rounds", "1")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            outs[parts] = self.report()
            for path in (self.folder / "out").iterdir():  # whoever calls may take it away
                path.unlink()
            (self.folder / "out").rmdir()
        found = outs["sanitizers"]
        self.assertEqual([call["parts"] for call in found["calls"]],
                         [["build", "quick"], ["others"], ["bench"], ["sanitizers"]])
        self.assertEqual(sorted(found["tests"]), ["others", "quick"])
        for part in ("build", "bench", "sanitizers"):
            self.assertIn(part, found)
        self.assertNotIn("bench", outs["others"])
        # Another build begins another report.
        self.check("--parts", "build,quick")
        self.assertEqual([call["parts"] for call in self.report()["calls"]], [["build", "quick"]])

    def packed(self, **environment):
        """A pack that is made where there is no GPU."""
        for name in ("bin/mpirun", "lib/arch/openmpi/lib/openmpi3/mca_btl_self.so",
                     "lib/arch/openmpi/lib/openmpi3/mca_btl_ofi.so", "lib/arch/pmix2/share/help.txt"):
            (self.folder / "mpi" / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / "mpi" / name).touch()
        file = self.folder / "lockstep.pack"
        done = self.check("--pack", file, STAND_IN_SMI="fails", **environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"packed into \S+lockstep.pack, 0.0 MiB: 4 programs of \S+ for 90")
        return file

    def test_what_is_packed_runs_elsewhere_without_a_build(self):
        file = self.packed()
        there = ("--build", self.folder / "there/build", "--packed", file)
        for name in ("cmake", "nvcc", "ompi_info"):
            (self.folder / "bin" / name).unlink()
        for parts in ("quick,sanitizers", "ranks", "bench"):
            done = self.check(*there, "--parts", parts, "--rounds", "1")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = self.report()
        self.assertEqual([call["parts"] for call in found["calls"]], [["quick", "sanitizers"], ["ranks"], ["bench"]])
        self.assertEqual((found["tests"]["quick"]["passed"], found["tests"]["ranks"]["passed"]), (1, 1))
        build = self.folder / "there/build"
        self.assertEqual((build / "tests/CTestTestfile.cmake").read_text(),
                         f"add_test(a {build}/bin/a {ROOT}/tests/x {sys.executable} /their/python3.11)\n")
        self.assertTrue((build / "usr/lib/arch/openmpi/lib/openmpi3/mca_btl_self.so").exists())
        self.assertFalse((build / "usr/lib/arch/openmpi/lib/openmpi3/mca_btl_ofi.so").exists())
        self.assertEqual(self.check(*there, "--parts", "others").returncode, 2)
        refused = self.check("--build", self.folder / "kept/build", "--packed", file)
        self.assertEqual((refused.returncode, "is a build" in refused.stderr), (3, True), refused.stderr)

    def test_what_a_packs_programs_lack_is_named_before_anything_runs(self):
        file = self.packed(STAND_IN_CUBLAS="libnowhere.so.13.1")
        done = self.check("--build", self.folder / "there/build", "--packed", file)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "gpu_check: this machine lacks libnowhere.so.13, which the pack's programs need\n")

    def test_a_part_that_is_called_again_replaces_what_it_found(self):
        done = self.check("--parts", "build,quick", STAND_IN_TESTS="Breaks:Works")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        done = self.check("--parts", "quick")
        self.assertEqual((done.returncode, self.report()["failures"]), (0, []), done.stdout + done.stderr)

    def test_every_log_is_in_the_archive(self):
        self.check("--parts", "build,quick,ranks,sanitizers")
        with tarfile.open(self.folder / "out/logs.tgz") as archive:
            names = archive.getnames()
        for name in ("build.log", "configure.log", "doctor.log", "ranks.log", "kernels_test-cuda.1.log", "memcheck-0.log"):
            self.assertIn(f"logs/{name}", names)

    def test_without_compute_sanitizer_it_is_skipped_with_a_reason(self):
        self.assertEqual(self.check("--quick", without=["compute-sanitizer"]).returncode, 0)
        self.assertEqual(self.report()["sanitizers"]["skipped"], "compute-sanitizer is not installed")

    def test_without_a_gpu_it_says_why_in_one_line_and_ends_with_3(self):
        done = self.check(STAND_IN_SMI="fails")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("no GPU: nvidia-smi lists none", done.stderr)
        self.assertEqual(self.check("--dry-run").returncode, 0)

    def test_a_folder_that_is_no_deps_folder_is_refused(self):
        (self.folder / "deps/environment").unlink()
        self.assertEqual(self.check().returncode, 2)


if __name__ == "__main__":
    unittest.main()
