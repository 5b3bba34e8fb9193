# SPDX-License-Identifier: Apache-2.0
"""Tests of scripts/gpu_check: its parsers on recorded outputs, and the whole on a machine made of stand-ins."""
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

from gpu import build, figures, gtest, host, results, sanitize, suite  # noqa: E402
from gpu.process import Outcome  # noqa: E402

STAND_INS = pathlib.Path(__file__).resolve().parent / "gpu_stand_ins"

JUNIT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="(empty)" tests="6" failures="2" disabled="0" skipped="2" hostname="" time="5">
  <testcase name="ok" classname="ok" time="0.25" status="run"><system-out></system-out></testcase>
  <testcase name="bad" classname="bad" time="0.5" status="fail"><failure message=""/><system-out>oh no
</system-out></testcase>
  <testcase name="slow" classname="slow" time="1" status="fail"><failure message=""/></testcase>
  <testcase name="skipped" classname="skipped" time="0" status="notrun">
    <skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/><system-out>no GPU</system-out></testcase>
  <testcase name="gone" classname="gone" time="0" status="notrun">
    <skipped message="Unable to find executable"/><system-out></system-out></testcase>
</testsuite>"""

PRINTED = """
3/5 Test #3: bad ..............................***Failed    0.50 sec
4/5 Test #4: slow .............................***Timeout   0.98 sec
"""

MEMCHECK = """========= COMPUTE-SANITIZER
Running main() from gtest_main.cc
========= Invalid __global__ write of size 4 bytes
=========     at void lockstep::kernels::map_kernel<float>(float *, long)+0x120 in map.cuh:41
=========     by thread (0,0,0) in block (1,0,0)
=========     Access at 0x7f5fc2000400 is out of bounds
=========
========= Invalid __global__ write of size 4 bytes
=========     at void lockstep::kernels::map_kernel<float>(float *, long)+0x120 in map.cuh:41
=========     by thread (1,0,0) in block (1,0,0)
=========
========= Barrier error detected. Divergent thread(s) in warp.
=========     at lockstep::kernels::sum_kernel(float *)+0x90 in block_sum.cuh:12
========= ERROR SUMMARY: 3 errors
"""

RACECHECK = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at block_sum.cuh:20 and Read access at map.cuh:24 [512 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""


def wait_for(file):
    """The file's content, once it is there."""
    while not file.exists() or not file.read_text():
        time.sleep(0.02)
    return file.read_text()


class Parsers(unittest.TestCase):
    def test_junit_tells_what_failed_was_skipped_and_was_not_there(self):
        found = suite.parse_junit(JUNIT, PRINTED)
        self.assertEqual(found["passed"], 1)
        self.assertEqual([(t["name"], t["why"]) for t in found["failed"]],
                         [("bad", "Failed"), ("slow", "Timeout"), ("gone", "Unable to find executable")])
        self.assertEqual(found["failed"][0]["output"], "oh no")
        self.assertEqual([t["name"] for t in found["skipped"]], ["skipped"])
        self.assertAlmostEqual(found["seconds"], 1.75)

    def test_a_listing_tells_labels_variables_and_limits(self):
        listed = suite.parse_listing("notice\n" + json.dumps({"tests": [
            {"name": "a", "command": ["a_test"], "properties": [
                {"name": "LABELS", "value": ["mpi", "gpu"]}, {"name": "TIMEOUT", "value": 7.0},
                {"name": "ENVIRONMENT", "value": ["A=1=2", "B=x"]},
                {"name": "ENVIRONMENT_MODIFICATION", "value": ["B=set:y"]}]}, {"name": "tensor.Works"}]}))
        self.assertEqual([suite.needs_gpu(test) for test in listed], [True, False])
        self.assertEqual(listed[0]["variables"], {"A": "1=2", "B": "y"})
        self.assertEqual(listed[0]["limit"], 7.0)

    def test_nvidia_smi_gives_devices_and_architectures(self):
        devices = host.parse_smi("NVIDIA H200, 9.0, 580.159.03, 143771\nNVIDIA A100-SXM4-40GB, 8.0, 580.159.03, 40960\n"
                                 "No devices were found\n")
        self.assertEqual([d["name"] for d in devices], ["NVIDIA H200", "NVIDIA A100-SXM4-40GB"])
        self.assertEqual(devices[0]["memory_mib"], 143771)
        self.assertEqual(host.architectures(devices + devices), "80;90")

    def test_libraries_are_found_in_wheels(self):
        with tempfile.TemporaryDirectory() as site:
            for path in ("cudnn/include/cudnn.h", "cudnn/lib/libcudnn.so.9", "nccl/lib/libnccl.so.2"):
                file = pathlib.Path(site, "nvidia", path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch()
            self.assertEqual(host.wheel_prefixes([site], "cudnn"), [pathlib.Path(site, "nvidia/cudnn")])
            self.assertEqual(host.wheel_prefixes([site], "nccl"), [])  # without its header

    def test_a_wheels_cublas_is_named_to_cmake(self):
        with tempfile.TemporaryDirectory() as prefix:
            (pathlib.Path(prefix) / "lib").mkdir()
            (pathlib.Path(prefix) / "lib/libcublasLt.so.13").touch()
            command = build.configure_command("root", "folder", "90", {"cublas": prefix})
            self.assertIn(f"-DCUDA_cublasLt_LIBRARY={prefix}/lib/libcublasLt.so.13", command)
        self.assertNotIn("cublas", " ".join(build.configure_command("root", "folder", "90", {"cublas": None})))

    def test_ninjas_failures_are_named(self):
        failed, errors = build.failures("FAILED: [code=1] a/b.cu.o\nnvcc ...\na/b.cu(7): error: x is undefined\n"
                                        "FAILED: bin/c\nundefined reference to `d()'\n")
        self.assertEqual(failed, ["a/b.cu.o", "bin/c"])
        self.assertEqual(len(errors), 2)


class Programs(unittest.TestCase):
    """GoogleTest programs, of which each runs many tests of CTest's in one process."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = self.folder / "kernels_test"
        self.program.write_text(f"#!{sys.executable}\n" + (STAND_INS / "kernels_test.py").read_text())
        self.program.chmod(0o755)

    def listed(self, *names, limit=30.0, **variables):
        return [{"name": f"kernels.{name}", "command": [str(self.program), f"--gtest_filter=Conv/0.{name}"],
                 "variables": variables, "limit": limit, "folder": str(self.folder), "disabled": False, "labels": []}
                for name in names]

    def run_tests(self, *tests, seconds=60):
        batches, others = gtest.batches(tests)
        self.assertEqual(others, [])
        return suite.run_programs(batches, dict(os.environ), self.folder, 2, time.monotonic() + seconds)

    def starts(self):
        return [json.loads(line) for line in (self.folder / "starts").read_text().splitlines()]

    def test_one_process_runs_all_and_each_has_its_result(self):
        found = self.run_tests(*self.listed("Works", "LeavesItsLineOpen", "Breaks", "Skips", "Works2"))
        self.assertEqual(len(self.starts()), 1)
        self.assertEqual((found["passed"], found["problems"]), (3, []))
        self.assertEqual([(t["name"], t["why"]) for t in found["failed"]], [("kernels.Breaks", "Failed")])
        self.assertIn("expected 1, found 2", found["failed"][0]["output"])
        self.assertEqual([t["name"] for t in found["skipped"]], ["kernels.Skips"])
        self.assertAlmostEqual(found["seconds"], 1.25)

    def test_variables_make_another_process(self):
        self.run_tests(*self.listed("Works"), *self.listed("Works", LOCKSTEP_TEST_DEVICE="cuda"))
        self.assertEqual(sorted(str(start["LOCKSTEP_TEST_DEVICE"]) for start in self.starts()), ["None", "cuda"])

    def test_a_crash_is_that_of_the_test_that_ran_and_the_rest_goes_on(self):
        for test, why in (("Crashes", "crashed: signal 6"), ("EndsTheProgram", "crashed: signal 15")):
            (self.folder / "starts").unlink(missing_ok=True)
            found = self.run_tests(*self.listed("Works", "Breaks", test, "After", "Skips"))
            self.assertEqual([start["tests"] for start in self.starts()][1:], [["Conv/0.After", "Conv/0.Skips"]])
            self.assertEqual((found["passed"], found["problems"]), (2, []))
            self.assertEqual({t["name"]: t["why"] for t in found["failed"]},
                             {"kernels.Breaks": "Failed", f"kernels.{test}": why})

    def test_a_hang_is_ended_and_the_rest_goes_on(self):
        found = self.run_tests(*self.listed("Works", "Hangs", "After", limit=1.0))
        self.assertEqual(found["passed"], 2)
        self.assertEqual([(t["name"], t["why"]) for t in found["failed"]],
                         [("kernels.Hangs", "Timeout: silent for 1 s")])

    def test_what_has_no_result_is_said(self):
        found = self.run_tests(*self.listed("Works", "Hangs", "After"), seconds=3)
        self.assertEqual((found["passed"], found["failed"]), (1, []))
        self.assertRegex(found["problems"][0], r"stopped after \d s in Conv/0.Hangs; 2 tests have no result")
        found = self.run_tests(*self.listed("Works", "NeverBegins"))
        self.assertRegex(found["problems"][0], "ended with 1: error while loading .*; 2 tests have no result")

    def test_a_program_that_skips_all_has_passed_none(self):
        found = self.run_tests(*self.listed("Works", "IsWithoutGpu"))
        self.assertEqual((found["passed"], found["failed"], len(found["skipped"])), (0, [], 2))

    def test_programs_of_several_processes_are_ctests(self):
        tests = [*self.listed("Works"), {"command": ["watchdog", "--limit", "60", "a_test", "--gtest_filter=A.B"]},
                 {"command": ["a_emulated_test", "--gtest_filter=A.*:B.*"]}, {"command": ["python3", "runs_test.py"]}]
        batches, others = gtest.batches(tests)
        self.assertEqual((len(batches), others), (1, tests[1:]))


class Archive(unittest.TestCase):
    def test_a_long_log_keeps_its_ends(self):
        content = b"begin" + bytes(results.LONGEST) + b"end"
        kept = results.shortened(content)
        self.assertLess(len(kept), results.LONGEST + 100)
        self.assertTrue(kept.startswith(b"begin") and kept.endswith(b"end") and b"8 bytes are left out" in kept)


class Sanitizers(unittest.TestCase):
    def test_findings_are_counted_by_their_head(self):
        found = sanitize.parse(MEMCHECK)
        self.assertEqual(sorted(found.values()), [1, 2])
        self.assertTrue(any("Invalid __global__ write of size 4 bytes at void lockstep" in head for head in found))
        self.assertEqual(list(sanitize.parse(RACECHECK).values()), [1])
        self.assertEqual(sanitize.parse("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"), {})

    def test_a_program_that_breaks_off_is_a_problem_and_no_finding(self):
        output = ("========= COMPUTE-SANITIZER\n========= Error: process didn't terminate successfully\n"
                  "========= Error: Target application terminated before first instrumented API call\n")
        row = sanitize.merge("memcheck", [("kernels_test", ["A.b"], Outcome(255, output, 1.0)),
                                          ("kernels_test", ["A.c", "A.d"], Outcome(None, "", 60.0, True)),
                                          ("kernels_test", ["A.e"], Outcome(sanitize.CODE, "unheard of", 1.0))])
        self.assertEqual(list(row["findings"]), ["kernels_test A.e: see the log"])
        self.assertIn("kernels_test A.b: ended with 255: ========= Error: Target application", row["problems"][0])
        self.assertEqual(row["unfinished"], ["kernels_test A.c and 1 more: stopped after 60 s"])

    def test_shards_hold_the_kernels_tests_alone(self):
        tests = [{"command": ["/b/bin/kernels_dnn_test", f"--gtest_filter=Conv/cuda_0.Test{i}",
                              "--gtest_also_run_disabled_tests"]} for i in range(5)]
        tests += [{"command": ["/b/bin/kernels_dnn_test", "--gtest_filter=Conv/cuda.HugeTensors"]},
                  {"command": ["/b/bin/train_test", "--gtest_filter=A.b"]}, {"command": ["watchdog", "mpirun"]}]
        self.assertEqual(sanitize.shards(tests, 3), [
            ("/b/bin/kernels_dnn_test", [f"Conv/cuda_0.Test{i}" for i in group]) for group in ((0, 1, 2), (3, 4))])


def program(*steps, **more):
    rounds = [{"step_ms": step, "host_us": 15.0, **more} for step in steps]
    return {"ready": {"first_step_ms": 5000.0}, "rounds": rounds}


class Figures(unittest.TestCase):
    RAW = {
        "steps": {"mlp": {"Lockstep, graph": program(0.27, 0.25, 0.26, host_waits=0, peak_memory_bytes=90),
                          "Lockstep, no graph": program(0.4, host_waits=3),
                          "PyTorch eager": program(0.78, peak_memory_bytes=120), "PyTorch compile": program()},
                  "sgd": {"PyTorch eager": program(1.2)}},
        "train": {"mlp": [{"step_ms_p50": 5.0, "time_to_first_step_ms": 900.0}]},
        "gpu_bench": [{"name": "copy", "us": 187.0, "gb_per_s": 4300.0},
                      {"name": "sgd momentum with inf check", "us": 600.0, "gb_per_s": 3655.0},
                      {"name": "matmul 8192 float16", "us": 1400.0, "tflop_per_s": 785.0},
                      {"name": "adam", "error": "broken"}],
        "digits": {"one rank": {"summary": {"eval": {"accuracy": 0.98}}, "seconds": 3.0}},
    }

    def setUp(self):
        self.rows = {row["what"]: row for row in figures.rows_of(self.RAW)}

    def test_the_fastest_variant_is_held_against_the_targets(self):
        self.assertEqual(self.rows["step, Lockstep, graph"]["value"], 0.26)
        self.assertIs(self.rows["step, Lockstep, graph"]["met"], True)
        self.assertIsNone(self.rows["step, Lockstep, no graph"]["met"])
        self.assertIs(self.rows["start to first step, lockstep train"]["met"], False)
        self.assertAlmostEqual(self.rows["PyTorch eager's step / Lockstep's"]["value"], 3.0)
        self.assertIs(self.rows["peak memory, Lockstep's / PyTorch eager's"]["met"], True)
        self.assertIs(self.rows["host waits a step, Lockstep, graph"]["met"], True)

    def test_a_peer_without_rounds_has_no_row(self):
        self.assertEqual([what for what in self.rows if "compile" in what], ["start to first step, PyTorch compile"])

    def test_kernels_are_held_against_the_copy(self):
        found = self.rows["sgd momentum with inf check"]
        self.assertAlmostEqual(found["value"], 0.85)
        self.assertIs(found["met"], False)
        self.assertIn("785 TFLOP/s", self.rows["matmul 8192 float16"]["text"])
        against = "PyTorch's fused sgd with scaler and casts / sgd momentum with inf check"
        self.assertAlmostEqual(self.rows[against]["value"], 2.0)

    def test_nothing_measured_gives_no_row(self):
        self.assertEqual(figures.rows_of({"steps": {}, "train": {}, "gpu_bench": [], "digits": {}}), [])


class WholeCheck(unittest.TestCase):
    """scripts/gpu_check with stand-ins for the GPU's driver, CMake, CTest, compute-sanitizer and PyTorch's Python."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "bin").mkdir()
        for name in ("nvidia-smi", "nvcc", "cmake", "ctest", "compute-sanitizer", "ompi_info", "python-with-torch"):
            file = self.folder / "bin" / name
            file.write_text(f"#!{sys.executable}\n" + (STAND_INS / f"{name}.py").read_text())
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
