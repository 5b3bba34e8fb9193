# SPDX-License-Identifier: Apache-2.0
"""The report and the logs of one or several calls: kept beside the build, and handed out as three files."""
import datetime
import io
import json
import pathlib
import tarfile

from gpu import report
from gpu.process import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONGEST = 4 << 20  # bytes of one log in the archive, half of them its beginning and half its end


class Results:
    """`folder` keeps the report and the logs between calls; `out` is for whoever reads them."""

    def __init__(self, folder, out, new):
        self.state, self.logs, self.out = folder / "state.json", folder / "logs", out
        now = datetime.datetime.now().isoformat(timespec="seconds")
        self.report = {"schema": 2, "date": now, "commit": commit(), "calls": [], "problems": {}}
        if new:
            for log in self.logs.glob("*"):
                log.unlink()
        elif self.state.exists():
            self.report = {**json.loads(self.state.read_text()), "commit": self.report["commit"]}
        self.earlier, self.date = self.report["calls"], now
        self.logs.mkdir(parents=True, exist_ok=True)

    def write(self, parts, seconds):
        """After every part: whoever is killed leaves what was found until then."""
        found = self.report
        found["calls"] = [*self.earlier, {"parts": parts, "date": self.date, "seconds": seconds}]
        found["seconds"] = sum(call["seconds"] for call in found["calls"])
        found["failures"] = report.failures(found)
        found["status"] = "failed" if found["failures"] else "passed"
        text = json.dumps(found, indent=1) + "\n"
        self.out.mkdir(parents=True, exist_ok=True)
        self.state.with_suffix(".new").write_text(text)
        self.state.with_suffix(".new").rename(self.state)
        (self.out / "report.json").write_text(text)
        (self.out / "report.md").write_text(report.markdown(found))
        (self.out / "logs.tgz").write_bytes(self.archive())

    def archive(self):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=5) as archive:
            for log in sorted(self.logs.glob("*")):
                content = shortened(log.read_bytes())
                entry = tarfile.TarInfo(f"logs/{log.name}")
                entry.size, entry.mtime = len(content), int(log.stat().st_mtime)
                archive.addfile(entry, io.BytesIO(content))
        return packed.getvalue()


def shortened(content):
    if len(content) <= LONGEST:
        return content
    left_out = f"\n[{len(content) - LONGEST} bytes are left out here]\n"
    return content[: LONGEST // 2] + left_out.encode() + content[-LONGEST // 2 :]


def commit():
    outcome = run(["git", "-C", ROOT, "describe", "--always", "--dirty"], 20)
    return outcome.output.strip() if outcome.ok else "unknown"
