# SPDX-License-Identifier: Apache-2.0
"""scripts/compare: what its report makes of measured rounds, and what it refuses."""
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from comparison import report  # noqa: E402


def side(*step_ms, losses=(2.0, 1.0), peak=100 << 20, growth=50 << 20):
    return {"step_ms": list(step_ms), "losses": list(losses), "peak": peak, "growth": growth}


class Report(unittest.TestCase):
    def test_a_row_stands_beside_the_fastest_precision_round_by_round(self):
        rows = report.rows_of("m", {"Lockstep fp32": side(4, 8, 4), "Lockstep bf16": side(2, 4, 2),
                                    "PyTorch fp32": side(8, 8, 8), "PyTorch bf16": side(3, 6, 4),
                                    "PyTorch bf16 compiled": side(9, 9, 9)})
        fp32, bf16 = rows
        self.assertEqual(("PyTorch bf16", 4), (fp32["best"], fp32["best_ms"]))
        self.assertEqual(0.75, fp32["ratio"])  # of 3/4, 6/8 and 4/4
        self.assertEqual([0.75, 1.0], fp32["spread"])
        self.assertEqual(2, fp32["same_ratio"])
        self.assertEqual(1.5, bf16["ratio"])
        self.assertEqual(["m, fp32: slower than PyTorch bf16: 0.75"], report.misses(rows))

    def test_losses_that_part_and_memory_that_is_more_are_named(self):
        rows = report.rows_of("m", {"Lockstep fp32": side(1, losses=[2.0, 1.01], peak=3, growth=2),
                                    "PyTorch fp32": side(2, losses=[2.0, 1.0], peak=2, growth=1)})
        self.assertFalse(rows[0]["agrees"])
        found = "\n".join(report.misses(rows))
        for part in ("losses differ by 1.0e-02", "holds more memory", "more memory beyond its start"):
            self.assertIn(part, found)

    def test_what_pytorch_cannot_do_is_named_and_leaves_the_rest(self):
        rows = report.rows_of("m", {"Lockstep fp16": side(1), "PyTorch fp16": {"problem": "not implemented for Half"},
                                    "Lockstep fp32": side(1), "PyTorch fp32": side(2)})
        self.assertEqual(2, rows[0]["ratio"])
        self.assertEqual(["m, fp16: not measured: PyTorch fp16: not implemented for Half"], report.misses(rows))
        page = report.page("Title", "where", rows)
        self.assertIn("| m | fp16 | - | 1.00 ms | - | - | fp32, 2.00 ms | 2.00 (2.00 to 2.00) | 100; 50 | - |", page)


class Command(unittest.TestCase):
    def compare(self, *options):
        return subprocess.run([sys.executable, "-B", str(ROOT / "scripts/compare"), *options], capture_output=True, text=True,
                              check=False)

    def test_refuses_what_it_does_not_know(self):
        for options, why in ((["--dtype", "fp8"], "fp8 is not one of"), (["--rounds", "0"], "at least 1"),
                             (["--python", sys.executable + "-without-torch"], "does not have PyTorch")):
            done = self.compare(*options)
            self.assertNotEqual(0, done.returncode)
            self.assertIn(why, done.stderr)


if __name__ == "__main__":
    unittest.main()
