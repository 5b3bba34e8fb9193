# SPDX-License-Identifier: Apache-2.0
"""A run names what its bits depend on beside the job, and a resume what of it has changed."""
import os
import subprocess
import unittest
from unittest import mock

from runs import CONFIGS, RunTest, mpirun_of, require_mpi

WARNING = "the bits may differ from those of an uninterrupted run: "
SHORT = ("train.eval_every=0", "checkpoint.every_steps=2")


class Environment(RunTest):
    def train_with(self, variables, steps, **options):
        with mock.patch.dict(os.environ, variables):
            return self.train("run", *SHORT, f"train.steps={steps}", **options)

    def test_a_resume_says_once_what_has_changed(self):
        first = self.train_with({"OMP_NUM_THREADS": "1"}, 2)
        self.assertEqual(first.summary["environment"]["threads"], 1)
        self.assertEqual(first.summary["environment"]["device"], "cpu")

        same = self.train_with({"OMP_NUM_THREADS": "1"}, 4)
        self.assertIn("resuming from", same.output)
        self.assertNotIn(WARNING, same.output)

        threads = self.train_with({"OMP_NUM_THREADS": "2"}, 6)
        self.assertIn(WARNING + "threads 1 -> 2\n", threads.output)

        isa = self.train_with({"OMP_NUM_THREADS": "2", "LOCKSTEP_CPU_ISA": "baseline"}, 8)
        self.assertRegex(isa.output, WARNING + r"instruction set \w+ -> baseline; onednn .* -> .* sse41\n")
        self.assertEqual(isa.summary["environment"]["instruction_set"], "baseline")

        ranks = self.train_with({"OMP_NUM_THREADS": "2", "LOCKSTEP_CPU_ISA": "baseline"}, 10, ranks=2)
        self.assertIn(WARNING + "ranks 1 -> 2\n", ranks.output)
        self.assertEqual(ranks.output.count(WARNING), 1)

    def test_small_operations_have_the_same_bits_on_any_number_of_threads(self):
        runs = []
        for threads in ("1", "2", "3"):
            with mock.patch.dict(os.environ, {"OMP_NUM_THREADS": threads}):
                runs.append(self.train("threads-" + threads, "train.steps=30", job=CONFIGS / "digits_mlp.pbtxt"))
        self.assertEqual({run.digest for run in runs}, {runs[0].digest})
        self.assertEqual([run.summary["environment"]["threads"] for run in runs], [1, 2, 3])

    def train_apart(self, isa_of_rank_1):
        """Two ranks, of which one uses a narrower instruction set."""
        require_mpi()
        train = self.command("apart", *SHORT, "train.steps=4", resume="never")
        ranks = mpirun_of(train, ["env", "LOCKSTEP_CPU_ISA=" + isa_of_rank_1, *train])
        return subprocess.run(ranks, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)

    def test_ranks_with_and_without_fused_multiply_add_are_refused(self):
        widest = self.train("widest", *SHORT, "train.steps=2").summary["environment"]["instruction_set"]
        if widest == "baseline":
            self.skipTest("this processor has no AVX2")
        run = self.train_apart("baseline")
        self.assertEqual(run.returncode, 7, run.stdout)
        self.assertIn("baseline on rank 1", run.stdout)
        self.assertIn("LOCKSTEP_CPU_ISA=baseline", run.stdout)

    def test_ranks_that_compute_differently_are_named(self):
        environment = self.train("widest", *SHORT, "train.steps=2").summary["environment"]
        if environment["instruction_set"] != "avx512":
            self.skipTest("this processor has no AVX-512")
        run = self.train_apart("avx2")
        if "Clang" in environment["compiler"]:  # it fuses other products in each
            self.assertEqual(run.returncode, 7, run.stdout)
            self.assertIn("avx2 on rank 1; avx512 on rank 0", run.stdout)
            return
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertEqual(run.stdout.count("instruction set avx512 on rank 0, avx2 on rank 1"), 1, run.stdout)


if __name__ == "__main__":
    unittest.main()
