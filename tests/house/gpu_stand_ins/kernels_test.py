# SPDX-License-Identifier: Apache-2.0
"""A GoogleTest program whose tests do what their names say."""
import json
import os
import pathlib
import signal
import sys
import time

flags = dict(line.split("=", 1) for line in pathlib.Path(sys.argv[1].split("=", 1)[1]).read_text().splitlines())
names = flags["--gtest_filter"].split(":")
variables = {name: os.environ.get(name) for name in ("LOCKSTEP_TEST_DEVICE", "OMP_NUM_THREADS")}
with open("starts", "a") as file:
    file.write(json.dumps({"tests": names, **variables}) + "\n")

if any(name.endswith("NeverBegins") for name in names):
    sys.exit("error while loading shared libraries: libcudnn.so.9")
whole_skip = any(name.endswith("IsWithoutGpu") for name in names)
if whole_skip:
    print("no GPU: every test is skipped (stand-in)", flush=True)
suites = {}
for name in names:
    suite, test = name.rsplit(".", 1)
    case = {"name": test, "status": "RUN", "result": "COMPLETED", "time": "0.25s"}
    if not whole_skip:
        print(f"[ RUN      ] {name}", flush=True)
        verdict = "OK"
        if test == "Breaks":
            print("a.cpp:7: Failure\nexpected 1, found 2")
            case["failures"] = [{"failure": "expected 1, found 2", "type": ""}]
            verdict = "FAILED"
        elif test == "Skips":
            case["result"], verdict = "SKIPPED", "SKIPPED"
        elif test == "LeavesItsLineOpen":
            print("a word", end="")
        elif test == "Crashes":
            os.abort()
        elif test == "Hangs":
            time.sleep(600)
        elif test == "EndsTheProgram":
            signal.raise_signal(signal.SIGTERM)
        print(f"{f'[{verdict:>9} ]' if verdict != 'OK' else '[       OK ]'} {name} (250 ms)", flush=True)
    suites.setdefault(suite, []).append(case)
file = flags["--gtest_output"].removeprefix("json:")
pathlib.Path(file).write_text(json.dumps({"testsuites": [{"name": suite, "testsuite": cases}
                                                         for suite, cases in suites.items()]}))
sys.exit(any("failures" in case for cases in suites.values() for case in cases))
