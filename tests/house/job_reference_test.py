# SPDX-License-Identifier: Apache-2.0
"""scripts/make_job_reference finds each way in which schema, defaults and page can disagree."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

MAKE = Path(__file__).resolve().parents[2] / "scripts" / "make_job_reference"
SCHEMA = """// SPDX-License-Identifier: Apache-2.0
syntax = "proto3";

package lockstep.job;

message Job {
  string name = 1;                // of the run; default: the file's stem
  Train train = 2;                // required
  repeated Group group = 3;
}

// ---- Training ----

message Train {                   // how long
  uint32 steps = 1;               // counted from 1; required
  // of the
  // loss; default 2.5 (a guess)
  optional double scale = 2;
  Mode mode = 3;                  // default FAST
  bool quiet = 4;
}

message Group {
  oneof kind {
    Train first = 1;              // the one
    Train second = 2;
  }
}

enum Mode {                       // of training
  MODE_DEFAULT = 0;
  FAST = 1;                       // as fast as it goes
  // half
  // as fast
  SLOW = 2;
}
"""
DEFAULTS = """if (job.name().empty()) job.set_name(stem);
"""


class JobReference(unittest.TestCase):
    def make(self, schema=SCHEMA, defaults=DEFAULTS, page=None):
        """The findings, or the page where there are none."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in (("configs/job.proto", schema), ("runtime/job/defaults.cpp", defaults), ("docs/job.md", page)):
                (root / name).parent.mkdir(parents=True)
                if text is not None:
                    (root / name).write_text(text, encoding="utf-8")
            check = [] if page is None else ["--check"]
            run = subprocess.run([sys.executable, "-B", MAKE, *check, root], capture_output=True, text=True, check=False)
            if run.returncode == 0:
                self.assertEqual("", run.stderr)
                return (root / "docs/job.md").read_text(encoding="utf-8")
            self.assertEqual((1, ""), (run.returncode, run.stdout))
            return run.stderr.splitlines()

    def expect_one(self, old, new, *parts, of="schema"):
        text = {"schema": SCHEMA, "defaults": DEFAULTS}[of]
        self.assertEqual(1, text.count(old))
        found = self.make(**{of: text.replace(old, new)})
        self.assertEqual(1, len(found), found)
        for part in parts:
            self.assertIn(part, found[0])

    def test_the_page_has_every_field_type_default_and_comment(self):
        page = self.make()
        for row in ("| `name` | string | the file's stem | of the run |", "| `train` | [Train](#train) | required |  |",
                    "| `group` | list of [Group](#group) | none |  |", "| `steps` | uint32 | required | counted from 1 |",
                    "| `scale` | double | `2.5` (a guess) | of the loss |", "| `mode` | [Mode](#mode) | `FAST` |  |",
                    "| `quiet` | bool | `false` |  |", "| `first` | [Train](#train) |  | the one |",
                    "| `FAST` | as fast as it goes |", "| `SLOW` | half as fast |"):
            self.assertIn(row + "\n", page)
        self.assertIn("\n## Train\n\nPath: `train`, `group[i].first`, `group[i].second`. How long.\n", page)
        self.assertIn("One of `first`, `second`.", page)
        self.assertNotIn("MODE_DEFAULT", page)

    def test_the_page_that_was_written_passes(self):
        page = self.make()
        self.assertEqual(page, self.make(page=page))

    def test_another_page_is_found(self):
        found = self.make(page=self.make().replace("counted from 1", "counted from 0"))
        self.assertEqual(["docs/job.md: is not what scripts/make_job_reference writes; run it"], found)

    def test_an_optional_field_that_names_no_default_is_found(self):
        self.expect_one("  bool quiet = 4;", "  optional bool quiet = 4;", "Train.quiet names no default")
        self.expect_one("  bool quiet = 4;", "  Mode quiet = 4;", "Train.quiet names no default")
        self.expect_one("; default 2.5 (a guess)", "", "Train.scale names no default")

    def test_words_are_told_from_values(self):
        self.expect_one("default FAST", "default FAST or SLOW", "no single value")
        self.expect_one("counted from 1; required", "default 1; counted from 1", "the last clause")

    def test_a_default_that_follows_from_others_says_so(self):
        self.expect_one("set_name(stem)", "set_quiet(true)", "sets quiet", of="defaults")

    def test_a_value_that_the_enum_does_not_have_is_found(self):
        self.expect_one("default FAST", "default QUICK", "default QUICK, which Mode does not have")

    def test_a_line_that_is_not_understood_is_found(self):
        self.expect_one("  bool quiet = 4;", "  map<string, bool> quiet = 4;", "job.proto:20: not understood")


if __name__ == "__main__":
    unittest.main()
