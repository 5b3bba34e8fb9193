#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is installed under include/ is lockstep/lockstep.h and what it includes, which knows no protobuf."""
import pathlib
import re
import sys
import unittest

INCLUDE = pathlib.Path(sys.argv.pop()) / "include"


def reached(name, found):
    """The headers of ours that a header includes, itself among them."""
    if name not in found:
        found.add(name)
        for included in re.findall(r'^#include "([^"]+)"', (INCLUDE / "lockstep" / name).read_text(), re.MULTILINE):
            reached(included, found)
    return found


class Headers(unittest.TestCase):
    def test_are_those_that_the_one_header_includes(self):
        installed = {path.relative_to(INCLUDE / "lockstep").as_posix() for path in INCLUDE.rglob("*") if path.is_file()}
        self.assertEqual(installed, reached("lockstep.h", set()))

    def test_know_no_protobuf(self):
        for path in INCLUDE.rglob("*.h"):
            self.assertNotIn("google/protobuf", path.read_text(), path)
            self.assertFalse(path.name.endswith(".pb.h"), path)


if __name__ == "__main__":
    unittest.main()
