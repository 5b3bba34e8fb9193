# SPDX-License-Identifier: Apache-2.0
"""scripts/quickstart tells the accuracy that its run came to; the build is the one that is tested."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Quickstart(unittest.TestCase):
    def test_tells_the_accuracy_of_the_last_evaluation(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "scripts").mkdir()
            shutil.copy(ROOT / "scripts/quickstart", folder / "scripts")
            build = folder / "scripts/build"
            build.write_text("#!/bin/sh\n")
            build.chmod(0o755)
            (folder / "configs").symlink_to(ROOT / "configs")
            (folder / "build/release/bin").mkdir(parents=True)
            (folder / "build/release/bin/lockstep").symlink_to(os.environ["LOCKSTEP_BINARY"])
            done = subprocess.run([folder / "scripts/quickstart", "--set", "train.steps=40", "--set", "train.eval_every=0"],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            summary, = folder.glob("runs/*/summary.json")
            accuracy = json.loads(summary.read_text(encoding="utf-8"))["eval"]["accuracy"]
            told, = re.findall(r"^test accuracy: (.*) % after [0-9]+ s$", done.stdout, re.MULTILINE)
            self.assertEqual(told, f"{100 * accuracy:.2f}")


if __name__ == "__main__":
    unittest.main()
