# SPDX-License-Identifier: Apache-2.0
"""Tests of the parts of scripts/gpu_check, on recorded outputs and programs of their own."""
import json
import os
import pathlib
import sys
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


if __name__ == "__main__":
    unittest.main()
