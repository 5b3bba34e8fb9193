# SPDX-License-Identifier: Apache-2.0
"""The tests through CTest, and its JUnit file as a report's numbers."""
import json
import xml.etree.ElementTree as ElementTree

from gpu.process import run

TAIL = 2500  # characters of a failed test's output that the report keeps


def parse_junit(text):
    """{"passed", "failed": [{name, why, output}], "skipped": [{name, why}], "seconds"} of CTest's --output-junit."""
    result = {"passed": 0, "failed": [], "skipped": [], "seconds": 0.0}
    for case in ElementTree.fromstring(text).iter("testcase"):
        name, output = case.get("name"), (case.findtext("system-out") or "").strip()
        result["seconds"] += float(case.get("time") or 0)
        skipped, failure = case.find("skipped"), case.find("failure")
        if case.get("status") == "run" and failure is None and skipped is None:
            result["passed"] += 1
        elif case.get("status") == "disabled" or skipped is not None:
            reason = (skipped.get("message") if skipped is not None else None) or case.get("status")
            result["skipped"].append({"name": name, "why": reason, "output": output[-TAIL:]})
        else:
            why = (failure.get("message") if failure is not None else None) or case.get("status") or "failed"
            result["failed"].append({"name": name, "why": why, "output": output[-TAIL:]})
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
    command = ["ctest", "--test-dir", folder, "--output-on-failure", "--output-junit", junit.resolve(),
               "--parallel", jobs, *arguments]
    outcome = run(command, limit, out / f"{name}.log", env=env)
    try:
        result = {**parse_junit(junit.read_text(errors="replace")), "problems": []}
    except (OSError, ElementTree.ParseError):
        # CTest writes the file at its end.
        return {"passed": 0, "failed": [], "skipped": [], "seconds": outcome.seconds,
                "problems": [f"ctest left no results: {outcome.why()}"]}
    if not outcome.ok and not result["failed"]:
        result["problems"].append(f"ctest {outcome.why()}")
    return {**result, "wall_seconds": outcome.seconds}
