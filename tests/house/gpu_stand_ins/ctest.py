# SPDX-License-Identifier: Apache-2.0
"""CTest that knows one GoogleTest program, of which STAND_IN_TESTS names the tests, and a test of two processes."""
import json
import os
import pathlib
import re
import sys

folder = sys.argv[sys.argv.index("--test-dir") + 1]
if "--show-only=json-v1" in sys.argv:
    def test(name, command, labels, **more):
        properties = {"LABELS": labels, "TIMEOUT": 2.0, "WORKING_DIRECTORY": folder,
                      "ENVIRONMENT": ["OMP_NUM_THREADS=1"], **more}
        return {"name": name, "command": command,
                "properties": [{"name": key, "value": value} for key, value in properties.items()]}

    names = os.environ.get("STAND_IN_TESTS", "Works:Skips").split(":")
    found = [test(f"kernels_cuda.Conv.{name}", [f"{folder}/bin/kernels_test", f"--gtest_filter=Conv/0.{name}"], ["gpu"],
                  ENVIRONMENT_MODIFICATION=["LOCKSTEP_TEST_DEVICE=set:cuda"]) for name in names]
    found.append(test("kernels.Conv.Works", [f"{folder}/bin/kernels_test", "--gtest_filter=Conv/0.Works"], []))
    found.append(test("kernels.Conv.DISABLED_Works", [f"{folder}/bin/kernels_test", "--gtest_filter=Conv/0.Hangs"], [],
                      DISABLED=True))
    found += [test(name, ["watchdog", "mpirun"], labels) for name, labels in (("group.a+b", ["mpi", "gpu"]),
                                                                             ("group.on_cpu", ["mpi"]))]
    print(json.dumps({"tests": found}))
    sys.exit(0)

chosen = sys.argv[sys.argv.index("-R") + 1]
names = [name for name in ("group.a+b", "group.on_cpu") if re.search(chosen, name)]
assert len(names) == 1, chosen
failed = bool(os.environ.get("STAND_IN_FAILED_TEST"))
if failed:
    print(f"2/2 Test #2: {names[0]} ...........***Failed    0.10 sec")
result = ('status="fail"><failure message=""/><system-out>expected 3, found 4</system-out></testcase>' if failed
          else 'status="run"/>')
pathlib.Path(sys.argv[sys.argv.index("--output-junit") + 1]).write_text(
    f'<testsuite><testcase name="{names[0]}" time="0.1" {result}</testsuite>')
sys.exit(8 if failed else 0)
