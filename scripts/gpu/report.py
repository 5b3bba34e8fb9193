# SPDX-License-Identifier: Apache-2.0
"""report.json as a page to read, and what in it counts as a failure."""


def failures(report):
    """One line for each thing that went wrong; a missed target is none."""
    found = []
    build = report.get("build")
    if build and not build["ok"]:
        found += [f"build: {problem}" for problem in build["problems"]]
    if report.get("doctor", {}).get("problem"):
        found.append(f"doctor: {report['doctor']['problem']}")
    for name, result in report.get("tests", {}).items():
        found += [f"tests, {name}: {problem}" for problem in result["problems"]]
        found += [f"test {test['name']}: {test['why']}" for test in result["failed"]]
    for tool in report.get("sanitizers", {}).get("tools", []):
        found += [f"{tool['tool']}: {text} ({count} x)" for text, count in tool["findings"].items()]
        found += [f"{tool['tool']}: {problem}" for problem in tool["problems"]]
    found += [f"bench: {problem}" for problem in report.get("bench", {}).get("problems", [])]
    found += [f"{part}: {problem}" for part, problems in report["problems"].items() for problem in problems]
    return found


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]


def count_text(result):
    return f"{result['passed']} passed, {len(result['failed'])} failed, {len(result['skipped'])} skipped"


def host_rows(report):
    host, doctor = report.get("host", {}), report.get("doctor", {})
    rows = [(f"GPU {i}", f"{d['name']}, compute capability {d['compute_capability']}, {d['memory_mib']} MiB, "
             f"driver {d['driver']}") for i, d in enumerate(host.get("devices", []))]
    libraries = doctor.get("examination", {}).get("libraries", {})
    rows += [(name, version) for name, version in libraries.items() if version]
    rows += [("found", f"{name}: {where}") for name, where in host.get("libraries", {}).items() if where]
    rows += [("PyTorch", f"{host['torch']} ({host['python']})")] if host.get("torch") else []
    return rows + [("processor", f"{host.get('cores')} cores")]


def sanitizer_rows(report):
    rows = []
    for tool in report.get("sanitizers", {}).get("tools", []):
        unfinished = f"; {len(tool['unfinished'])} runs unfinished" if tool["unfinished"] else ""
        rows.append((tool["tool"], f"{sum(tool['findings'].values())} findings in {tool['tests']} tests{unfinished}"))
    return rows


def summary_rows(report):
    rows = []
    if "build" in report:
        rows.append(("build", f"{'done' if report['build']['ok'] else 'FAILED'} in {report['build']['seconds']:.0f} s"))
    for name, result in report.get("tests", {}).items():
        rows.append((f"tests, {name}", count_text(result)))
    rows += sanitizer_rows(report)
    if report.get("sanitizers", {}).get("skipped"):
        rows.append(("sanitizers", f"skipped: {report['sanitizers']['skipped']}"))
    if "bench" in report:
        judged = [row for row in report["bench"]["rows"] if row["met"] is not None]
        rows.append(("targets", f"{sum(row['met'] for row in judged)} of {len(judged)} met"))
    return rows


def bench_lines(bench):
    lines = []
    for name in dict.fromkeys(row["table"] for row in bench["rows"]):
        rows = [(row["what"], row["text"], row["target"] or "", {True: "yes", False: "**no**", None: ""}[row["met"]])
                for row in bench["rows"] if row["table"] == name]
        lines += ["", f"## {name}", "", *table(("what", "measured", "to reach", "met"), rows)]
    if bench["skipped"]:
        lines += ["", "Not measured:", "", *[f"- {item['what']}: {item['why']}" for item in bench["skipped"]]]
    return lines


def details(report):
    lines = []
    for name, result in report.get("tests", {}).items():
        for test in result["failed"]:
            lines += ["", f"### {test['name']} ({name})", "", "```", test["output"].replace("```", "'''"), "```"]
    if lines:
        lines = ["", "## Failed tests", *lines]
    for name, result in report.get("tests", {}).items():
        if result["skipped"]:
            lines += ["", f"## Skipped tests, {name}", "", *[f"- {test['name']}" for test in result["skipped"]]]
    unfinished = [f"- {tool['tool']}: {text}" for tool in report.get("sanitizers", {}).get("tools", [])
                  for text in tool["unfinished"]]
    if unfinished:
        lines += ["", "## Unfinished under a sanitizer", "", *unfinished]
    return lines


def markdown(report):
    found = report["failures"]
    lines = [f"# GPU check, {report['date']}", "",
             f"Commit {report['commit']}; {report['seconds']:.0f} s in {len(report['calls'])} calls. **{report['status']}**"
             + (f": {len(found)} failures" if found else ""), ""]
    lines += [*[f"- {text}" for text in found], ""] if found else []
    lines += [*table(("host", ""), host_rows(report)), "", *table(("part", "result"), summary_rows(report))]
    if "bench" in report:
        lines += ["", "Lockstep and PyTorch in turns on the same GPU; medians. Absolute targets are for an H200."]
        lines += bench_lines(report["bench"])
    return "\n".join(lines + details(report)) + "\n"
