# SPDX-License-Identifier: Apache-2.0
"""The tests through CTest, and its JUnit file as a report's numbers."""
import datetime
import json
import re
import xml.etree.ElementTree as ElementTree

from gpu.process import run

TAIL = 2500  # characters of a failed test's output that the report keeps


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
             "output": (case.findtext("system-out") or "").strip()[-TAIL:]})
    return result


def parse_listing(text):
    """[{"name", "command", "labels"}] of ctest --show-only=json-v1."""
    tests = []
    for test in json.loads(text[text.index("{"):])["tests"]:
        labels = next((p["value"] for p in test.get("properties", []) if p["name"] == "LABELS"), [])
        tests.append({"name": test["name"], "command": test.get("command", []), "labels": labels})
    return tests


def needs_gpu(test):
    """By its label; by its name where a build has no labels yet."""
    return "gpu" in test["labels"] or any(word in test["name"].lower() for word in ("cuda", "nccl"))


def listing(folder, env):
    outcome = run(["ctest", "--test-dir", folder, "--show-only=json-v1"], limit=120, env=env)
    if not outcome.ok:
        raise RuntimeError(f"ctest cannot list the tests: {outcome.why()}")
    return parse_listing(outcome.output)


def run_tests(folder, arguments, name, env, out, jobs, limit):
    """One run of CTest: what parse_junit gives, and "problems" where CTest itself went wrong."""
    junit = out / f"{name}.junit.xml"
    junit.unlink(missing_ok=True)
    # CTest stops in time to write its file.
    stop = datetime.datetime.now() + datetime.timedelta(seconds=limit)
    command = ["ctest", "--test-dir", folder, "--output-on-failure", "--output-junit", junit.resolve(),
               "--stop-time", stop.strftime("%H:%M:%S"), "--parallel", jobs, *arguments]
    outcome = run(command, limit + 30, out / f"{name}.log", env=env)
    try:
        result = {**parse_junit(junit.read_text(errors="replace"), outcome.output), "problems": []}
    except (OSError, ElementTree.ParseError):
        return {"passed": 0, "failed": [], "skipped": [], "seconds": outcome.seconds,
                "problems": [f"ctest left no results: {outcome.why()}"]}
    if "The stop time has been passed" in outcome.output:
        result["problems"].append(f"stopped after {limit:.0f} s; not every test has run to its end")
    elif not outcome.ok and not result["failed"]:
        result["problems"].append(f"ctest {outcome.why()}")
    return {**result, "wall_seconds": outcome.seconds}
