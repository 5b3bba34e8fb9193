# SPDX-License-Identifier: Apache-2.0
"""A machine that lacks memory or threads: the run ends with words and an exit code, never by a signal."""
import resource
import unittest

from runs import RunTest

MEBIBYTE = 1 << 20
# Without room for its libraries the program is not started at all.
LOADER_FAILED = 127


class AddressSpace(RunTest):
    def test_too_little_of_it_is_a_clear_error(self):
        codes = set()
        for mebibytes in [*range(100, 200, 8), *range(200, 700, 25)]:
            run = self.start(f"run-{mebibytes}", "train.steps=2", limit=(resource.RLIMIT_AS, mebibytes * MEBIBYTE)).finish()
            codes.add(run.code)
            with self.subTest(mebibytes):
                self.assertIn(run.code, (0, 3, 6, LOADER_FAILED), run.output)
                if run.code == 6:
                    self.assertRegex(run.output, r"cannot allocate .* MiB of its address space \(ulimit -v, -d\); "
                                                 r"this process holds \d+ MiB, in use: ")
                if run.code == 3:
                    self.assertRegex(run.output, "lacks threads|lacked threads")
        self.assertIn(6, codes)

    def test_enough_of_it_changes_nothing(self):
        free = self.train("free", "train.steps=2")
        limited = self.train("limited", "train.steps=2", limit=(resource.RLIMIT_AS, 8192 * MEBIBYTE))
        self.assertEqual(limited.digest, free.digest)


if __name__ == "__main__":
    unittest.main()
