# SPDX-License-Identifier: Apache-2.0
"""compute-sanitizer over the GPU tests of the kernels: short runs in parallel, each with a limit."""
import concurrent.futures
import pathlib
import re
import time

from gpu.gtest import gtest_name
from gpu.process import processes, run

CODE = 77  # compute-sanitizer's exit code for a finding; GoogleTest ends with 1
SHARD = 24  # tests a run: an instrumented process takes seconds to start, and one hung test must not cost many
AT_ONCE = 4  # more only wait for the GPU
# Hazards in shared memory and misused barriers are looked for in our own kernels; memory errors in libraries' too, as
# they come of what we hand to them.
OWN = ["--kernel-name", "kns=lockstep"]
TOOLS = {"memcheck": [], "racecheck": OWN, "synccheck": OWN, "initcheck": OWN}
# A report's head stands one blank behind the rule, its details further in.
HEAD = re.compile(r"^={9} (\S[^\n]*)(?:\n={9} +at ([^\n]*))?", re.MULTILINE)
NO_FINDING = re.compile(r"COMPUTE-SANITIZER|[A-Z]+ SUMMARY|(Error|Warning): (?!Race)|Target app|Internal|Device not")
# What allocates gigabytes would take minutes.
TOO_LARGE = re.compile(r"huge|large|billion|2_?31|beyond", re.IGNORECASE)


def shards(tests, size=SHARD):
    """[(program, [filter])] of the GPU tests among CTest's, only those of kernels, in their order."""
    by_program = {}
    for test in tests:
        name = gtest_name(test)
        if name and "kernels" in pathlib.Path(test["command"][0]).name and not TOO_LARGE.search(name):
            by_program.setdefault(test["command"][0], {})[name] = None
    return [(program, list(filters)[i : i + size]) for program, filters in by_program.items()
            for i in range(0, len(filters), size)]


def command(tool, program, filters):
    # Our code looks at what every call returns, and tests provoke some of these errors.
    return ["compute-sanitizer", "--tool", tool, "--report-api-errors", "no", "--error-exitcode", CODE,
            "--print-limit", 20, *TOOLS[tool], program, f"--gtest_filter={':'.join(filters)}", "--gtest_brief=1"]


def parse(output):
    """The findings: the head of each report, as compute-sanitizer words it, and how often."""
    findings = {}
    for match in HEAD.finditer(output):
        if NO_FINDING.match(match[1]):
            continue
        head = re.sub(r"0x[0-9a-f]+", "0x..", match[1]) + (f" at {match[2].strip()}" if match[2] else "")
        findings[head[:300]] = findings.get(head[:300], 0) + 1
    return findings


def merge(tool, runs):
    """One row of the report of [(program, filters, outcome)]."""
    row = {"tool": tool, "runs": len(runs), "tests": 0, "findings": {}, "unfinished": [], "problems": []}
    for program, filters, outcome in runs:
        name = f"{pathlib.Path(program).name} {filters[0]}" + (f" and {len(filters) - 1} more" if filters[1:] else "")
        for head, count in parse(outcome.output).items():
            row["findings"][head] = row["findings"].get(head, 0) + count
        if outcome.timed_out:
            row["unfinished"].append(f"{name}: {outcome.why()}")
            continue
        row["tests"] += len(filters)
        if outcome.code == CODE and not parse(outcome.output):
            row["findings"][f"{name}: see the log"] = 1
        elif outcome.code not in (0, CODE):
            row["problems"].append(f"{name}: {outcome.why()}")
    return row


def sanitize(tests, tools, env, out, seconds, each=60):
    """The rows of all tools, with at most so many seconds in all, shared among them, and for one run."""
    work = shards(tests)
    rows = []
    for number, tool in enumerate(tools):
        end = time.monotonic() + seconds / len(tools)

        def check(index, shard, tool=tool, end=end):
            left = end - time.monotonic()
            if left < 5:
                return None
            log = out / f"{tool}-{index}.log"
            return (*shard, run(command(tool, *shard), min(each, left), log, env=env))

        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            try:
                runs = list(pool.map(check, range(len(work)), work))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                processes.end_all()
                raise
        row = merge(tool, [done for done in runs if done])
        left_out = sum(len(shard[1]) for shard, done in zip(work, runs) if not done)
        if left_out:
            row["unfinished"].append(f"{left_out} tests were not begun in the time")
        rows.append(row)
    return rows
