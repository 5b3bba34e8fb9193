#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every operation asks the autocast policy: a row of amp/autocast/policy.h that nobody asks for would do nothing."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def operations(header):
    """The enumerators of Op."""
    return re.findall(r"^ +X\((k\w+),", header, re.M)


def unasked(names, sources):
    return [name for name in names if not any(re.search(rf"\bOp::{name}\b", source) for source in sources)]


class Policy(unittest.TestCase):
    def test_is_asked_by_every_operation(self):
        names = operations((ROOT / "amp/autocast/policy.h").read_text())
        sources = [path.read_text() for path in (ROOT / "runtime/ops").iterdir()
                   if path.suffix in (".h", ".cpp")]
        self.assertGreater(len(names), 20)
        self.assertEqual(unasked(names, sources), [])

    def test_names_an_operation_that_does_not_ask(self):
        header = '#define LOCKSTEP_OPERATIONS(X) \\\n  X(kAdd, "add", kPromote) \\\n  X(kAddMul, "addmul", kPromote)\n'
        self.assertEqual(unasked(operations(header), ["amp::autocast(amp::Op::kAddMul, x)"]), ["kAdd"])


if __name__ == "__main__":
    sys.exit(unittest.main())
