# SPDX-License-Identifier: Apache-2.0
"""A language model learns a text, on any number of ranks, and writes on from a prompt."""
import json
import re
import struct
import subprocess
import unittest

from runs import CONFIGS, LOCKSTEP, RANK_COUNTS, RunTest

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
GOLDEN = CONFIGS.parent / "tests/golden/tokenizers.json"
TEXT = "The quick brown fox jumps over the lazy dog. " * 40


def byte_vocabulary(*pairs):
    """A vocab.json as GPT-2's: a token a byte, whose letter is printable, and these."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    vocabulary = {chr(byte if byte in printable else 256 + others.index(byte)): byte for byte in range(256)}
    return vocabulary | {pair: 256 + i for i, pair in enumerate(pairs)}


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

    def test_numbers_of_tokens_are_written_with_their_vocabulary(self):
        numbers = self.folder / "numbers.bin"
        numbers.write_bytes(b"".join(struct.pack("<H", (97, 98, 256)[i % 3]) for i in range(400)))
        (self.folder / "vocab.json").write_text(json.dumps(byte_vocabulary("ab")), encoding="utf-8")
        (self.folder / "merges.txt").write_text("#version: 0.2\na b\n", encoding="utf-8")
        self.job.write_text(JOB % (0, numbers, numbers), encoding="utf-8")
        tokens = ["data.train.tokens.vocabulary=257", "data.eval.tokens.vocabulary=257"]
        run = self.train("run", "train.steps=20", *tokens, job=self.job)
        settings = [part for setting in tokens for part in ("--set", setting)]
        refused = self.infer(run, "--prompt", "a", *settings, code=2)
        advised = re.findall(r"--set\s+(data\S+)=(\S+)", refused)
        self.assertEqual(len(advised), 2, refused)
        for field, file in advised:
            settings += ["--set", f"{field}={self.folder}/{file}"]
        written = self.infer(run, "--prompt", "ab", "--tokens", "5", "--temperature", "0", *settings)
        self.assertRegex(written, r"^ab[ab]{5}", "what the numbers 97, 98 and 256 stand for")

    def test_a_tokenizer_file_encodes_the_text_and_the_prompt(self):
        golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
        (self.folder / "tokenizer.json").write_text(json.dumps(golden["tokenizers"]["llama3"]["file"]), encoding="utf-8")
        # The evaluation text takes that of the training text.
        settings = [f"data.train.tokens.tokenizer_file={self.folder / 'tokenizer.json'}"]
        runs = [self.train(str(ranks), *settings, "train.steps=60", "model.gpt.dropout=0", job=self.job, ranks=ranks)
                for ranks in RANK_COUNTS]
        self.assert_close(runs[-1].column("loss"), runs[0].column("loss"), 1e-2)
        written = self.infer(runs[0], "--prompt", "The quick ", "--tokens", "12", "--temperature", "0", "--set", settings[0])
        self.assertIn("brown fox", written)

    def test_numbers_of_four_bytes_are_written_with_their_tokenizer(self):
        golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
        tokenizer = golden["tokenizers"]["qwen2"]["file"]
        far = 151_935  # above what 16 bits hold
        tokenizer["added_tokens"].append({**tokenizer["added_tokens"][0], "id": far, "content": "<far>"})
        (self.folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
        numbers = self.folder / "numbers.bin"
        numbers.write_bytes(struct.pack("<400I", *[tokenizer["model"]["vocab"]["a"], far] * 200))
        self.job.write_text(JOB % (0, numbers, numbers), encoding="utf-8")
        tokens = [f"data.{split}.tokens.{field}" for split in ("train", "eval")
                  for field in ("format=UINT32", f"tokenizer_file={self.folder / 'tokenizer.json'}")]
        run = self.train("run", *tokens, "train.steps=4", "optimizer.adamw.lr=0.05", "model.gpt.layers=1", "model.gpt.width=8",
                         job=self.job)
        settings = [part for setting in (*tokens, "model.gpt.layers=1", "model.gpt.width=8") for part in ("--set", setting)]
        written = self.infer(run, "--prompt", "a", "--tokens", "4", "--temperature", "0", *settings)
        self.assertIn("<far>", written)

    def test_a_text_is_for_language_models(self):
        run = self.train("digits", "train.steps=1")
        command = [LOCKSTEP, "infer", str(run.directory / "job.pbtxt"), "--checkpoint", str(run.directory),
                   "--prompt", "a"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("data.train.tokens", result.stderr)


if __name__ == "__main__":
    unittest.main()
