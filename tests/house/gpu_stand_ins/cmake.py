# SPDX-License-Identifier: Apache-2.0
"""CMake whose build is a lockstep command and a gpu_bench that know all answers."""
import os
import pathlib
import sys
import time

LOCKSTEP = """
import json, os, pathlib, sys
if "doctor" in sys.argv:
    print(json.dumps({"trains_on": ["cpu", "cuda"], "libraries": {"cuda": "13.0", "cudnn": "9.1"}, "findings": []}))
elif os.environ.get("STAND_IN_TRAIN") == "crashes":
    sys.exit("error: an illegal memory access was encountered")
else:
    run_dir = pathlib.Path(sys.argv[sys.argv.index("--run-dir") + 1])
    (run_dir / "summary.json").write_text(json.dumps({
        "device": "cuda:0", "step_ms_p50": 0.3, "time_to_first_step_ms": 600.0, "weights_digest": "ab",
        "eval": {"accuracy": 0.99}}))
"""
GPU_BENCH = """
print('{"name": "copy", "us": 187.0, "gb_per_s": 4300.0}')
"""
STEP_BENCH = """
import json, os, sys
assert os.environ["LOCKSTEP_AUTOTUNE"] in ("on", "off") and os.path.isdir(os.environ["LOCKSTEP_PLAN_CACHE"])
print('{"ready": true, "first_step_ms": 500.0}', flush=True)
for _ in sys.stdin:
    print(json.dumps({"step_ms": 0.3, "host_us": 9.0, "host_waits": 0, "peak_memory_bytes": 1048576,
                      "graph_share": float(os.environ.get("STAND_IN_GRAPH_SHARE", 1))}), flush=True)
"""

assert os.environ["FROM_DEPS"] == "1"
if "--build" in sys.argv:
    if os.environ.get("STAND_IN_BUILD") == "fails":
        print("FAILED: a.cu.o\na.cu(7): error: identifier is undefined")
        sys.exit(1)
    if os.environ.get("STAND_IN_BUILD") == "hangs":
        pathlib.Path(sys.argv[sys.argv.index("--build") + 1], "pid").write_text(str(os.getpid()))
        time.sleep(600)
    folder = pathlib.Path(sys.argv[sys.argv.index("--build") + 1]) / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    kernels_test = pathlib.Path(os.environ["STAND_IN_KERNELS_TEST"]).read_text()
    for name, text in (("lockstep", LOCKSTEP), ("gpu_bench", GPU_BENCH), ("step_bench", STEP_BENCH),
                       ("kernels_test", kernels_test)):
        (folder / name).write_text(f"#!{sys.executable} -S\n{text}")
        (folder / name).chmod(0o755)
else:
    assert "-DLOCKSTEP_CUDA_ARCHITECTURES=90" in sys.argv
    folder = pathlib.Path(sys.argv[sys.argv.index("-B") + 1])
    # What a pack is made of; the C library's mathematics stand for a library that is opened by name.
    (folder / "CMakeCache.txt").write_text(
        f"CUDA_cublasLt_LIBRARY:FILEPATH=/cuda/{os.environ.get('STAND_IN_CUBLAS', 'libm.so.6')}\n"
        "_Python3_EXECUTABLE:INTERNAL=/their/python3\n")
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "tests/CTestTestfile.cmake").write_text(
        f"add_test(a {folder}/bin/a {os.environ['STAND_IN_ROOT']}/tests/x /their/python3 /their/python3.11)\n")
