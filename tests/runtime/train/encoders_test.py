# SPDX-License-Identifier: Apache-2.0
"""A vision transformer learns digits, and BERT hidden tokens and classes of texts: alike on any number of ranks and in
every precision, resumed to the same bits."""
import csv
import json
import random
import struct
import subprocess
import unittest

from runs import CONFIGS, FP32, HAS_MPI, LOCKSTEP, RANK_COUNTS, RunTest, npy

DIGITS = """
  global_batch: 64
  train { idx { images: "%(data)s/train-images-idx3-ubyte.gz" labels: "%(data)s/train-labels-idx1-ubyte.gz" } }
  eval { idx { images: "%(data)s/test-images-idx3-ubyte.gz" labels: "%(data)s/test-labels-idx1-ubyte.gz" } }
  normalize { mean: 0.3 std: 0.35 }
  eval_batch: 297
""" % {"data": CONFIGS / "data" / "digits"}
VIT = "vit { patch: 2 layers: 2 heads: 2 width: 32 hidden: 64 dropout: %s attention_dropout: %s }"
BERT = "bert { layers: 2 heads: 2 width: 32 hidden: 64 context: 16 dropout: %s initial_deviation: 0.1 %s }"
JOB = """
name: "encoder" seed: 3
model { %s }
data { %s }
optimizer { adamw { lr: 3e-3 weight_decay: 0.01 } }
schedule { cosine { warmup_steps: 5 } }
train { steps: %d }
"""
# The gradient of the keys' bias is 0 but for rounding, which Adam would make steps of.
SGD = "optimizer={sgd{lr:0.1}}"
PAD, WORDS, LENGTH = 0, 13, 12


class Encoders(RunTest):
    def job(self, model, data, steps=6):
        path = self.folder / "job.pbtxt"
        path.write_text(JOB % (model, data, steps), encoding="utf-8")
        return path

    def vit(self, dropout=0.1, **options):
        return self.job(VIT % (dropout, dropout), DIGITS, **options)

    def masked_bert(self, dropout=0.1, **options):
        text = self.folder / "text.txt"
        text.write_text("The quick brown fox jumps over the lazy dog. " * 40, encoding="utf-8")
        data = """global_batch: 24
                  train { tokens { files: "%s" context: 16 stride: 7 end: 0.9 vocabulary: 128 masked { share: 0.3 } } }
                  eval { tokens { files: "%s" context: 16 begin: 0.9 vocabulary: 128 } }""" % (text, text)
        return self.job(BERT % (dropout, ""), data, **options)

    def labelled_bert(self, dropout=0.1, **options):
        """Which of two tokens a text has, among tokens that say nothing; texts of some length, filled up."""
        dice = random.Random(1)
        for split, count in (("train", 400), ("eval", 60)):
            texts, labels = [], []
            for _ in range(count):
                text = [dice.randrange(4, WORDS) for _ in range(dice.randrange(3, LENGTH + 1))]
                labels.append(dice.randrange(2))
                text[dice.randrange(1, len(text))] = 2 + labels[-1]
                text[0] = 1
                texts += text + [PAD] * (LENGTH - len(text))
            (self.folder / f"{split}_x.npy").write_bytes(npy("<u2", (count, LENGTH), struct.pack(f"<{len(texts)}H", *texts)))
            (self.folder / f"{split}_y.npy").write_bytes(npy("|u1", (count,), bytes(labels)))
        arrays = 'arrays { features: "%s_x.npy" targets: "%s_y.npy" vocabulary: %d }'
        data = "global_batch: 32 train { %s } eval { %s }" % tuple(arrays % (split, split, WORDS) for split in ("train", "eval"))
        return self.job(BERT % (dropout, f"pad_token: {PAD}"), data, **options)

    def kinds(self):
        """Each kind of job, made when it is its turn: they have one name."""
        for kind in (self.vit, self.masked_bert, self.labelled_bert):
            with self.subTest(kind.__name__):
                yield kind.__name__, kind

    def test_an_evaluation_counts_the_targets_of_its_own_data(self):
        job = self.masked_bert(dropout=0)
        text = job.read_text(encoding="utf-8")
        job.write_text(text.replace("begin: 0.9 vocabulary: 128 }", "begin: 0.9 vocabulary: 128 masked { share: 0.8 } }"),
                       encoding="utf-8")
        run = self.train("run", job=job)
        result = subprocess.run([LOCKSTEP, "eval", str(job), "--checkpoint", str(run.directory), "--json"],
                                capture_output=True, text=True, check=True)
        alone = json.loads(result.stdout)
        self.assertLessEqual(run.summary["eval"]["accuracy"], 1)
        for metric in ("accuracy", "loss", "perplexity"):
            self.assertAlmostEqual(alone[metric], run.summary["eval"][metric], places=5)

    def test_one_two_and_three_ranks_learn_alike(self):
        for name, make in self.kinds():
            job = make()
            one = self.train(f"{name}1", *FP32, SGD, job=job)
            for ranks in (2, 3) if HAS_MPI else ():
                self.assert_same_to_rounding(self.train(f"{name}{ranks}", *FP32, SGD, job=job, ranks=ranks), one, 1e-4)

    def test_a_resume_in_mid_epoch_has_the_same_bits(self):
        for name, make in self.kinds():
            job = make()
            for ranks in RANK_COUNTS:
                whole = self.train(f"{name}{ranks}", job=job, ranks=ranks)
                self.train(f"{name}{ranks}cut", "train.steps=3", job=job, ranks=ranks)
                self.assertEqual(self.train(f"{name}{ranks}cut", job=job, ranks=ranks).digest, whole.digest)

    def test_checkpointed_activations_give_the_same_bits(self):
        for name, make in self.kinds():
            job = make()
            model = "vit" if name == "vit" else "bert"
            for level in ("O0", "O1"):
                amp = f"amp={{opt_level: {level} dtype: {'BF16' if level == 'O1' else 'FP32'}}}"
                plain = self.train(f"{name}{level}", amp, job=job)
                again = self.train(f"{name}{level}again", amp, f"model.{model}.checkpoint_activations=true", job=job)
                self.assertEqual(again.digest, plain.digest)

    def test_16_bits_learn_as_float32_does(self):
        for name, make in self.kinds():
            losses = {}
            job = make(dropout=0, steps=30)
            for dtype, level in (("FP32", "O0"), ("BF16", "O1"), ("FP16", "O1"), ("BF16", "O2"), ("FP16", "O2")):
                run = self.train(f"{name}{dtype}{level}", f"amp={{opt_level: {level} dtype: {dtype}}}", job=job)
                losses[dtype + level] = run.summary["eval"]["loss"]
            self.assertLessEqual(max(losses.values()) - min(losses.values()), 0.05 * losses["FP32O0"] + 0.02, losses)

    def infer(self, job, run, name, *options, code=0):
        out = self.folder / name
        command = [LOCKSTEP, "infer", str(job), "--device", "cpu", "--checkpoint", str(run.directory), "--json", "--out",
                   str(out), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return (json.loads(done.stdout), out) if code == 0 else done.stderr

    def check_probabilities(self, job, run, classes):
        result, out = self.infer(job, run, "p.csv")
        self.assertAlmostEqual(result["accuracy"], run.summary["eval"]["accuracy"])
        with open(out, encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), run.summary["eval"]["samples"])
        for row in rows:
            probabilities = [float(row[f"p{c}"]) for c in range(classes)]
            self.assertAlmostEqual(sum(probabilities), 1, 5)
            self.assertEqual(int(row["class"]), probabilities.index(max(probabilities)))

    def test_a_vision_transformer_learns_digits(self):
        job = self.vit(dropout=0, steps=400)
        run = self.train("run", "optimizer.adamw.lr=6e-3", job=job)
        self.assertGreaterEqual(run.summary["eval"]["accuracy"], 0.9)
        self.assertEqual(set(run.summary["eval"]), {"samples", "loss", "accuracy", "top5_accuracy", "baseline"})
        self.check_probabilities(job, run, 10)

    def test_bert_finds_hidden_tokens(self):
        job = self.masked_bert(dropout=0, steps=500)
        run = self.train("run", "optimizer.adamw.lr=5e-3", "schedule.cosine.warmup_steps=50", job=job)
        self.assertEqual(set(run.summary["eval"]), {"samples", "loss", "accuracy", "perplexity"})
        self.assertGreaterEqual(run.summary["eval"]["accuracy"], 0.8)
        command = [LOCKSTEP, "infer", str(job), "--checkpoint", str(run.directory), "--prompt", "The"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("writes no texts: gpt and llama do", done.stderr)
        result, out = self.infer(job, run, "p.csv")  # of each position a token
        self.assertEqual(len(out.read_text(encoding="utf-8").splitlines()), 1 + run.summary["eval"]["samples"])
        self.assertAlmostEqual(result["accuracy"], run.summary["eval"]["accuracy"])

    def test_bert_tells_texts_apart(self):
        job = self.labelled_bert(dropout=0, steps=100)
        run = self.train("run", job=job)
        self.assertGreaterEqual(run.summary["eval"]["accuracy"], 0.95)
        self.assertEqual(set(run.summary["eval"]), {"samples", "loss", "accuracy", "baseline"})
        self.check_probabilities(job, run, 2)

    def test_data_that_do_not_fit_are_refused(self):
        run = self.train("patch", "model.vit.patch=3", code=2, job=self.vit())
        self.assertIn("model.vit.patch: 3 does not divide the extents of the images, [8, 8, 1]", run.output)
        run = self.train("images", "model={bert{}}", code=2, job=self.vit())
        self.assertIn("model.bert: needs texts with a label a position, or with one target", run.output)
        run = self.train("texts", "model={vit{}}", code=2, job=self.masked_bert())
        self.assertIn("model.vit: needs samples [height, width, channels], the data has [16]", run.output)
        run = self.train("label", "model={gpt{}}", code=2, job=self.labelled_bert())
        self.assertIn("model.gpt: needs texts with a label a position", run.output)


if __name__ == "__main__":
    unittest.main()
