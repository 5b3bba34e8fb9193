# SPDX-License-Identifier: Apache-2.0
"""The tests that CTest knows, run with few starts of CUDA, as a report's numbers."""
import concurrent.futures
import datetime
import json
import re
import time
import xml.etree.ElementTree as ElementTree

from gpu import gtest
from gpu.process import processes, run


def reasons(output):
    """{test: "Timeout" | "Failed" | ...} of what CTest prints, which its file does not tell."""
    return dict(re.findall(r"Test +#\d+: (\S+) \.*\*\*\*([A-Z][A-Za-z ]*?)  ", output))


def parse_junit(text, printed=""):
    """CTest's --output-junit as {"passed", "failed": [{name, why, output}], "skipped": [the same], "seconds"}."""
    result = {"passed": 0, "failed": [], "skipped": [], "seconds": 0.0}
    why = reasons(printed)
    for case in ElementTree.fromstring(text).iter("testcase"):
        result["seconds"] += float(case.get("time") or 0)
        if case.get("status") == "run":
            result["passed"] += 1
            continue
        skipped = case.find("skipped")
        message = skipped.get("message") if skipped is not None else None
        # What CTest could not even start, a program that was not built, counts as skipped to it.
        by_choice = case.get("status") == "disabled" or (message or "").startswith("SKIP_")
        result["skipped" if by_choice else "failed"].append(
            {"name": case.get("name"), "why": message or why.get(case.get("name")) or case.get("status"),
             "output": (case.findtext("system-out") or "").strip()[-gtest.TAIL:]})
    return result


def variables_of(properties):
    """The environment variables that CTest sets for a test."""
    variables = dict(entry.partition("=")[::2] for entry in properties.get("ENVIRONMENT", []))
    for entry in properties.get("ENVIRONMENT_MODIFICATION", []):
        name, _, change = entry.partition("=")
        operation, _, value = change.partition(":")
        if operation != "set":
            raise ValueError(f"ENVIRONMENT_MODIFICATION {entry}: only set is known")
        variables[name] = value
    return variables


def parse_listing(text):
    """[{"name", "command", "labels", "variables", "limit", "folder"}] of ctest --show-only=json-v1."""
    tests = []
    for test in json.loads(text[text.index("{"):])["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        tests.append({"name": test["name"], "command": test.get("command", []), "labels": properties.get("LABELS", []),
                      "variables": variables_of(properties), "limit": float(properties.get("TIMEOUT", 300)),
                      "folder": properties.get("WORKING_DIRECTORY"), "disabled": bool(properties.get("DISABLED"))})
    return tests


def needs_gpu(test):
    return "gpu" in test["labels"]


def part_of(test):
    """The part of the check that it belongs to."""
    return "others" if not needs_gpu(test) else "quick" if gtest.gtest_name(test) else "ranks"


def listing(folder, env):
    outcome = run(["ctest", "--test-dir", folder, "--show-only=json-v1"], limit=120, env=env)
    if not outcome.ok:
        raise RuntimeError(f"ctest cannot list the tests: {outcome.why()}")
    return parse_listing(outcome.output)


def new_result():
    return {"passed": 0, "failed": [], "skipped": [], "seconds": 0.0, "problems": []}


def merge(into, result):
    into["passed"] += result["passed"]
    into["seconds"] += result["seconds"]
    for name in ("failed", "skipped", "problems"):
        into[name] += result[name]


def run_ctest(folder, tests, name, env, logs, jobs, limit):
    """One run of CTest with these tests: what parse_junit gives, and "problems" where CTest itself went wrong."""
    junit = logs / f"{name}.junit.xml"
    junit.unlink(missing_ok=True)
    # CTest stops in time to write its file.
    stop = datetime.datetime.now() + datetime.timedelta(seconds=max(1, limit - 10))
    chosen = "|".join(re.sub(r"([^\w/-])", r"[\1]", test["name"]) for test in tests)
    command = ["ctest", "--test-dir", folder, "--output-on-failure", "--output-junit", junit,
               "--stop-time", stop.strftime("%H:%M:%S"), "--parallel", jobs, "-R", f"^({chosen})$"]
    outcome = run(command, limit, logs / f"{name}.log", env=env)
    try:
        result = {**new_result(), **parse_junit(junit.read_text(errors="replace"), outcome.output)}
    except (OSError, ElementTree.ParseError):
        return {**new_result(), "problems": [f"ctest left no results of {len(tests)} tests: {outcome.why()}"]}
    done = result["passed"] + len(result["failed"]) + len(result["skipped"])
    if "The stop time has been passed" in outcome.output or done < len(tests):
        result["problems"].append(f"stopped for lack of time; {len(tests) - done} tests have no result")
    elif not outcome.ok and not result["failed"]:
        result["problems"].append(f"ctest {outcome.why()}")
    return result


def run_programs(batches, env, logs, at_once, deadline):
    """The tests of GoogleTest programs, a process each, the largest first."""
    result = new_result()
    batches = sorted(batches, key=lambda batch: -len(batch.tests))
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        try:
            runs = list(pool.map(lambda batch: gtest.Run(batch, env, logs, deadline).run(), batches))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            processes.end_all()
            raise
    for done in runs:
        result["problems"] += done.problems
        for test in done.results:
            result["seconds"] += test.seconds
            if test.status == "passed":
                result["passed"] += 1
            else:
                result[test.status].append({"name": test.name, "why": test.why, "output": test.output})
    return result


def run_tests(folder, tests, name, env, logs, at_once, limit):
    """All of these tests of CTest's: those of GoogleTest many to a process, the others, such as those of several
    processes, through CTest."""
    begin = time.monotonic()
    tests = [test for test in tests if not test["disabled"]]
    batches, others = gtest.batches(tests)
    result = run_programs(batches, env, logs, at_once, begin + (0.8 * limit if others else limit))
    if others:
        merge(result, run_ctest(folder, others, name, env, logs, at_once, limit - (time.monotonic() - begin)))
    return {**result, "wall_seconds": time.monotonic() - begin}
