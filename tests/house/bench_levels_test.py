# SPDX-License-Identifier: Apache-2.0
"""scripts/bench --levels: a table with a row for each opt level and dtype."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class BenchLevels(unittest.TestCase):
    def bench(self, *options):
        return subprocess.run([sys.executable, "-B", str(ROOT / "scripts/bench"), *map(str, options)],
                              capture_output=True, text=True, check=False)

    def test_tells_accuracy_step_and_memory_of_each_level(self):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "levels.md"
            done = self.bench("--levels", "--binary", os.environ["LOCKSTEP_BINARY"], "--rounds", 1, "--out", out,
                              "--set", "train.steps=3", "--set", "train.eval_every=0",
                              "--set", "schedule={ constant {} }")
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = out.read_text(encoding="utf-8").splitlines()
        rows = {cells[0]: cells[1:] for cells in
                ([cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| O"))}
        self.assertEqual(list(rows), ["O0 fp32", "O1 fp16", "O1 bf16", "O2 fp16", "O2 bf16", "O3 fp16", "O3 bf16"])
        for cells in rows.values():
            self.assertRegex(cells[0], r"^[0-9.]+ %$")
            self.assertRegex(cells[1], r"^[0-9.]+ ms$")
        held = {level: float(cells[4].removesuffix(" MiB")) for level, cells in rows.items()}
        self.assertEqual(held["O1 fp16"], held["O2 bf16"])

    def test_refuses_what_belongs_to_levels_without_them(self):
        self.assertEqual(self.bench("--set", "train.steps=3").returncode, 2)
        self.assertEqual(self.bench("--levels", "--rounds", 0).returncode, 2)

    def test_refuses_operations_without_a_peer(self):
        done = self.bench("--operations")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--pytorch", done.stderr)


if __name__ == "__main__":
    unittest.main()
