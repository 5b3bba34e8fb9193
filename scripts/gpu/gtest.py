# SPDX-License-Identifier: Apache-2.0
"""Many tests of a GoogleTest program in one process: a CUDA start each takes longer than most of them."""
import dataclasses
import json
import pathlib
import re
import time

from gpu.process import run

SILENCE = 120  # seconds that a test may take, or fewer if it has a shorter limit of its own
TAIL = 2500  # characters of a failed test's output that the report keeps

# What GoogleTest prints before and after each test, at once; a test may have left its own last line open.
BEGAN = re.compile(r"^\[ RUN      \] (\S+)$", re.MULTILINE)
ENDED = re.compile(r"\[ *(OK|FAILED|SKIPPED) *\] ([^\s,]+)(?:, where .*)? \((\d+) ms\)$", re.MULTILINE)
# What tests/support/devices.h says where a program runs none of its tests.
WHOLE_SKIP = "no GPU: every test is skipped"
RESULTS = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}


@dataclasses.dataclass
class Result:
    name: str  # CTest's
    status: str  # "passed", "failed", "skipped"
    seconds: float = 0.0
    why: str = ""
    output: str = ""


@dataclasses.dataclass
class Batch:
    """Tests that one process can run: CTest's names by GoogleTest's, "suite.test"."""

    program: str
    folder: str  # that it runs in
    variables: tuple  # (name, value) pairs
    limit: float  # seconds for one test
    tests: dict

    def name(self):
        device = dict(self.variables).get("LOCKSTEP_TEST_DEVICE")
        return pathlib.Path(self.program).name + (f"-{device}" if device else "")


def gtest_name(test):
    """The one test that a CTest command of gtest_discover_tests runs, and itself starts: GoogleTest's name, or None."""
    for word in test["command"][1:]:
        if match := re.fullmatch(r"--gtest_filter=([^*:]+)", word):
            return match[1] if pathlib.Path(test["command"][0]).name.endswith("_test") else None
    return None


def batches(tests):
    """(batches, the tests of CTest's that are none of GoogleTest's alone)."""
    found, others = {}, []
    for test in tests:
        name = gtest_name(test)
        if name is None:
            others.append(test)
            continue
        key = test["command"][0], test["folder"], tuple(sorted(test["variables"].items()))
        batch = found.setdefault(key, Batch(*key, min(test["limit"], SILENCE), {}))
        batch.tests[name] = test["name"]
    return list(found.values()), others


def parse_output(text):
    """({test: (status, seconds, output)}, the test that had not ended or None) of what a program printed."""
    results, running, at = {}, None, 0
    for match in sorted([*BEGAN.finditer(text), *ENDED.finditer(text)], key=lambda match: match.start()):
        if match.re is BEGAN:
            running, at = match[1], match.end()
        elif running == match[2]:  # else a repetition of the list of failures at the end
            results[running] = (RESULTS[match[1]], int(match[3]) / 1000, text[at : match.start()].strip())
            running = None
    return results, running


def parse_json(text):
    """{test: (status, seconds, messages)} of --gtest_output=json. Tests that a program skips as a whole, before the first
    one, are in it as if they had passed."""
    results = {}
    for suite in json.loads(text).get("testsuites", []):
        for case in suite.get("testsuite", []):
            failed = [failure.get("failure", "") for failure in case.get("failures", [])]
            status = "failed" if failed else "skipped" if case.get("result") == "SKIPPED" else "passed"
            seconds = float(case.get("time", "0s").removesuffix("s"))
            results[f"{suite['name']}.{case['name']}"] = (status, seconds, "\n".join(failed))
    return results


class Run:
    """One batch to its end: what crashes or hangs costs its own test alone, the rest goes on in another process."""

    def __init__(self, batch, env, logs, deadline):
        self.batch, self.logs, self.deadline = batch, logs, deadline
        self.env = {**env, **dict(batch.variables)}
        self.left = dict(batch.tests)
        self.results, self.problems = [], []
        self.starts = 0

    def take(self, name, status, seconds=0.0, why="", output=""):
        if name in self.left:
            self.results.append(Result(self.left.pop(name), status, seconds, why, output[-TAIL:]))

    def run(self):
        while self.left:
            seconds = self.deadline - time.monotonic()
            if seconds < 2:
                self.problems.append(f"{self.batch.name()}: no time was left for {len(self.left)} tests")
                break
            if not self.start(seconds):
                break
        return self

    def start(self, seconds):
        """One process with the tests that are left; whether another one is to go on."""
        self.starts += 1
        stem = f"{self.batch.name()}.{self.starts}"
        report, flags = self.logs / f"{stem}.json", self.logs / f"{stem}.flags"
        report.unlink(missing_ok=True)
        # In a file, as there may be more than a command line takes.
        flags.write_text(f"--gtest_filter={':'.join(self.left)}\n--gtest_output=json:{report}\n--gtest_color=no\n")
        outcome = run([self.batch.program, f"--gtest_flagfile={flags}"], seconds, self.logs / f"{stem}.log",
                      cwd=self.batch.folder, env=self.env, silence=self.batch.limit)
        printed, running = parse_output(outcome.output)
        recorded = read_json(report)
        for name in printed if recorded is None else set(recorded) & set(BEGAN.findall(outcome.output)):
            status, took, text = (recorded or printed).get(name)
            output = printed[name][2] if name in printed else text
            self.take(name, status, took, "Failed" if status == "failed" else "", output if status != "passed" else "")
        if recorded is None:
            return self.broke_off(outcome, running)
        skipped = WHOLE_SKIP in outcome.output
        for name in list(self.left):
            self.take(name, "skipped" if skipped else "failed", 0.0, "" if skipped else "it did not run", outcome.output)
        if outcome.code not in (0, 1):
            self.problems.append(f"{self.batch.name()} has run its tests and then {outcome.why()}")
        return False

    def broke_off(self, outcome, running):
        """The process has left no report: it crashed, hung or was stopped."""
        in_time = self.deadline - time.monotonic() > 2
        if running is None or (outcome.timed_out and not in_time):
            # Between two tests, or before the first, nobody knows whose fault it is.
            where = f" in {running}" if running else ""
            self.problems.append(f"{self.batch.name()}: {outcome.why()}{where}; {len(self.left)} tests have no result")
            return False
        after = outcome.output[outcome.output.rfind(f"[ RUN      ] {running}"):]
        why = f"Timeout: silent for {self.batch.limit:.0f} s" if outcome.timed_out else f"crashed: {crash(outcome.code)}"
        self.take(running, "failed", outcome.seconds, why, after)
        return True


def read_json(file):
    """None where the program has not come to write it."""
    try:
        return parse_json(file.read_text(errors="replace"))
    except (OSError, ValueError):
        return None


def crash(code):
    return f"signal {-code}" if code is not None and code < 0 else f"ended with {code}"
