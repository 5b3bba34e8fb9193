# SPDX-License-Identifier: Apache-2.0
"""A language model learns a text, on any number of ranks, and writes on from a prompt."""
import json
import subprocess
import unittest

from runs import LOCKSTEP, RANK_COUNTS, RunTest

JOB = """
name: "text" seed: 3
model { gpt { layers: 2 heads: 2 width: 32 context: 16 dropout: %s } }
data {
  global_batch: 12
  train { tokens { files: "%s" context: 16 stride: 7 end: 0.9 } }
  eval { tokens { files: "%s" context: 16 begin: 0.9 } }
}
optimizer { adamw { lr: 0.01 } }
train { steps: 8 }
"""
TEXT = "The quick brown fox jumps over the lazy dog. " * 40


class Text(RunTest):
    def setUp(self):
        super().setUp()
        text = self.folder / "text.txt"
        text.write_text(TEXT, encoding="utf-8")
        self.job = self.folder / "text.pbtxt"
        self.job.write_text(JOB % (0.1, text, text), encoding="utf-8")

    def infer(self, run, *arguments, code=0):
        command = [LOCKSTEP, "infer", str(self.job), "--checkpoint", str(run.directory), "--device", "cpu", *arguments]
        result = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout if code == 0 else result.stderr

    def test_one_and_two_ranks_learn_alike(self):
        # The gradient of the keys' bias is 0 but for rounding, which Adam would make steps of.
        sgd = "optimizer={sgd {lr: 0.1}}"
        one = self.train("1", sgd, job=self.job)
        for ranks in RANK_COUNTS[1:]:
            self.assert_same_to_rounding(self.train(str(ranks), sgd, job=self.job, ranks=ranks), one, 1e-4)
        result = one.summary["eval"]
        self.assertEqual(set(result), {"samples", "loss", "accuracy", "perplexity"})

    def test_a_resume_in_mid_epoch_has_the_same_bits(self):
        for ranks in RANK_COUNTS:
            whole = self.train(f"whole{ranks}", job=self.job, ranks=ranks)
            self.train(f"cut{ranks}", "train.steps=3", job=self.job, ranks=ranks)
            self.assertEqual(self.train(f"cut{ranks}", job=self.job, ranks=ranks).digest, whole.digest)

    def test_it_writes_the_text_that_it_has_learnt(self):
        run = self.train("run", "train.steps=400", "model.gpt.dropout=0", job=self.job)
        # Longer than the context.
        likeliest = self.infer(run, "--prompt", "The quick ", "--tokens", "40", "--temperature", "0")
        self.assertTrue(likeliest.startswith("The quick brown fox jumps over the lazy dog. The"), likeliest)
        self.assertEqual(self.infer(run, "--prompt", "The quick ", "--tokens", "40", "--top-k", "1"), likeliest)
        drawn = [self.infer(run, "--prompt", "T", "--tokens", "30", "--temperature", "5", "--seed", seed)
                 for seed in ("1", "1", "2")]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])
        written = json.loads(self.infer(run, "--prompt", "The", "--tokens", "3", "--json"))
        self.assertEqual((written["prompt"], written["tokens"], len(written["text"])), ("The", 3, 3))

    def test_a_model_of_more_tokens_than_the_data_has(self):
        run = self.train("run", "train.steps=60", "model.gpt.dropout=0", "model.gpt.vocabulary=300", job=self.job)
        # Most letters of a text that repeats are soon known; rows of another width would give noise.
        self.assertGreater(run.summary["eval"]["accuracy"], 0.5)
        self.infer(run, "--prompt", "The", "--tokens", "20", "--set", "model.gpt.vocabulary=300")

    def test_what_a_text_has_no_use_for_is_refused(self):
        run = self.train("run", "train.steps=1", job=self.job)
        self.infer(run, "--prompt", "T", "--half", code=2)
        self.infer(run, "--tokens", "3", code=2)
        self.infer(run, "--prompt", "T", "--nproc", "2", code=2)

    def test_a_text_is_for_language_models(self):
        run = self.train("digits", "train.steps=1")
        command = [LOCKSTEP, "infer", str(run.directory / "job.pbtxt"), "--checkpoint", str(run.directory),
                   "--prompt", "a"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("data.train.tokens", result.stderr)


if __name__ == "__main__":
    unittest.main()
