# SPDX-License-Identifier: Apache-2.0
"""A machine that lacks memory or threads: the run ends with words and an exit code, never by a signal."""
import resource
import subprocess
import unittest

from runs import LOCKSTEP, RunTest, require_mpi

KIBIBYTE = 1 << 10
MEBIBYTE = 1 << 20
# Without room for its libraries the program is not started at all.
LOADER_FAILED = 127


NO_ROOM_FOR_WORDS = r"^lockstep: error \(memory, exit 6\)\n  cannot allocate memory: .*\n  → Raise its limits \(ulimit -v, -d\)"


def version(kibibytes):
    """`lockstep --version` in so much address space."""
    return subprocess.run([LOCKSTEP, "--version"], capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (kibibytes * KIBIBYTE,) * 2))


class AddressSpace(RunTest):
    def test_too_little_of_it_to_start_is_a_clear_error(self):
        loaded, too_little = 8 << 20, 0
        while loaded - too_little > 16:
            middle = (loaded + too_little) // 2
            if version(middle).returncode == LOADER_FAILED:
                too_little = middle
            else:
                loaded = middle
        # In steps of less than the libraries take, each for itself, while they start.
        limits = [*range(too_little, too_little + 1024, 16), *range(too_little + 1024, too_little + 8192, 128),
                  *range(too_little + 8192, too_little + 65536, 4096)]
        answers = [version(kibibytes) for kibibytes in limits]
        # Where it fails, the loader may also crash: up to there nothing of ours has run.
        begin = 1 + max(i for i, told in enumerate(answers) if told.returncode == LOADER_FAILED)
        for kibibytes, told in zip(limits[begin:], answers[begin:]):
            with self.subTest(kibibytes):
                self.assertIn(told.returncode, (0, 6), told.stderr)
                if told.returncode == 6:
                    self.assertRegex(told.stderr, NO_ROOM_FOR_WORDS)
        self.assertEqual({told.returncode for told in answers[begin:]}, {0, 6})

    def test_too_little_of_it_is_a_clear_error(self):
        codes = set()
        for mebibytes in [*range(100, 200, 8), *range(200, 700, 25)]:
            run = self.start(f"run-{mebibytes}", "train.steps=2", limit=(resource.RLIMIT_AS, mebibytes * MEBIBYTE)).finish()
            codes.add(run.code)
            with self.subTest(mebibytes):
                self.assertIn(run.code, (0, 3, 6, LOADER_FAILED), run.output)
                if run.code == 6:
                    self.assertRegex(run.output, r"cannot allocate .* MiB of its address space \(ulimit -v, -d\); "
                                                 r"this process holds \d+ MiB, in use: |" + NO_ROOM_FOR_WORDS)
                if run.code == 3:
                    self.assertRegex(run.output, "lacks threads|lacked threads")
        self.assertIn(6, codes)

    def test_enough_of_it_changes_nothing(self):
        free = self.train("free", "train.steps=2")
        limited = self.train("limited", "train.steps=2", limit=(resource.RLIMIT_AS, 8192 * MEBIBYTE))
        self.assertEqual(limited.digest, free.digest)


class OtherLimits(RunTest):
    """A process that may raise them does; another one says so before anything is started."""

    def test_a_stack_of_64_kib_is_no_crash(self):
        run = self.start("run", "train.steps=2", limit=(resource.RLIMIT_STACK, 64 * KIBIBYTE)).finish()
        self.assertIn(run.code, (0, 3), run.output)
        if run.code == 3:
            self.assertIn("the stack may have 64 KiB, and a run needs 256", run.output)

    def test_24_open_files_are_enough_for_one_rank(self):
        self.train("run", "train.steps=2", limit=(resource.RLIMIT_NOFILE, 24))

    def test_24_open_files_hang_no_mpirun(self):
        require_mpi()
        run = self.start("run", "train.steps=2", ranks=2, limit=(resource.RLIMIT_NOFILE, 24)).finish()
        self.assertIn(run.code, (0, 3), run.output)
        if run.code == 3:
            self.assertRegex(run.output, r"mpirun and 2 ranks need \d+ open files, and this process may have 24")


if __name__ == "__main__":
    unittest.main()
