#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is installed under include/ is lockstep/ alone: the headers that programs include, and what these reach by that
name. They know no protobuf, and those that the pages of docs/ lead to are among them."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = pathlib.Path(sys.argv.pop()) / "include"
# The pages for those who use Lockstep. Others are about its sources.
PAGES = ("cpp", "command-line", "mixed-precision", "train-your-own-data")


def reached(name, found):
    """The headers of ours that a header includes, itself among them."""
    if name not in found:
        found.add(name)
        for included in re.findall(r'^#include [<"](lockstep/[^">]+)', (INCLUDE / name).read_text(), re.MULTILINE):
            reached(included, found)
    return found


class Headers(unittest.TestCase):
    def named(self):
        pages = "".join((ROOT / f"docs/{page}.md").read_text() for page in PAGES)
        return {"lockstep/" + header for header in re.findall(r"\]\(\.\./([^)]+\.h)\)", pages)}

    def test_that_pages_name_are_there(self):
        self.assertIn("lockstep/runtime/onnx/export.h", self.named())
        for header in self.named():
            self.assertTrue((INCLUDE / header).is_file(), header)

    def test_are_those_that_programs_include(self):
        installed = {path.relative_to(INCLUDE).as_posix() for path in INCLUDE.rglob("*") if path.is_file()}
        wanted = set()
        for header in self.named() | {"lockstep/lockstep.h", "lockstep/version.h"}:
            reached(header, wanted)
        self.assertEqual(installed, wanted)

    def test_include_one_another_by_the_name_of_the_project(self):
        for path in INCLUDE.rglob("*.h"):
            for included in re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE):
                self.assertTrue(included.startswith("lockstep/"), f"{path}: {included}")

    def test_know_no_protobuf(self):
        for path in INCLUDE.rglob("*.h"):
            self.assertNotIn("google/protobuf", path.read_text(), path)
            self.assertFalse(path.name.endswith(".pb.h"), path)


if __name__ == "__main__":
    unittest.main()
