# SPDX-License-Identifier: Apache-2.0
"""Hugging Face folders: init writes a job from one, training starts from it, and export writes one."""
import json
import random
import struct
import subprocess
import unittest
import zlib

from runs import FP32, LOCKSTEP, RunTest

GPT2 = {"model_type": "gpt2", "vocab_size": 300, "n_positions": 24, "n_embd": 16, "n_layer": 1, "n_head": 2,
        "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
# "ab" and "abc" are tokens of their own, and every byte is one.
MERGES = "#version: 0.2\na b\nab c\n"


def byte_symbols():
    """GPT-2's printable stand-ins of the 256 bytes, in the order of the bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def png(width, height, pixels):
    """A PNG file of rows of three bytes a pixel."""
    rows = b"".join(b"\0" + pixels[3 * width * y:3 * width * (y + 1)] for y in range(height))

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class Hub(RunTest):
    def setUp(self):
        super().setUp()
        self.random = random.Random(1)
        (self.folder / "text.txt").write_text("".join(self.random.choice("abcdef \n") for _ in range(3000)), encoding="utf-8")

    def lockstep(self, *arguments, code=0):
        result = subprocess.run([LOCKSTEP, *map(str, arguments)], cwd=self.folder, capture_output=True, encoding="utf-8",
                                check=False)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def hub(self, config, name="hub", vocabulary=False):
        folder = self.folder / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        if vocabulary:
            symbols = byte_symbols() + ["ab", "abc"]
            (folder / "vocab.json").write_text(json.dumps({symbol: i for i, symbol in enumerate(symbols)}), encoding="utf-8")
            (folder / "merges.txt").write_text(MERGES, encoding="utf-8")
        return folder

    def first_folder(self, model, config):
        """A folder with the weights that a run of `model` ended with, and this config.json."""
        job = self.folder / "first.pbtxt"
        job.write_text("model { %s } data { global_batch: 4 train { tokens { files: 'text.txt' context: 16 } } } "
                       "optimizer { sgd { lr: 0.1 } } train { steps: 2 }" % model, encoding="utf-8")
        run = self.train("first", *FP32, job=job)
        hub = self.hub(config, vocabulary=True)
        self.lockstep("export", job, "--checkpoint", run.directory, "--out", hub / "model.safetensors")
        return hub

    def test_a_folder_goes_through_init_train_and_export(self):
        hub = self.first_folder("gpt { layers: 1 heads: 2 width: 16 context: 24 vocabulary: 300 }", GPT2)
        said = self.lockstep("init", "text.txt", "--model", hub, "--out", "job.pbtxt", "--context", 16)
        self.assertIn("tokens of a vocabulary's byte pairs", said)
        text = (self.folder / "job.pbtxt").read_text(encoding="utf-8")
        for part in ('init_from { path: "hub" }', "heads: 2 ", "# n_head: heads that share the width", "context: 24 ",
                     'vocab_file: "hub/vocab.json" merges_file: "hub/merges.txt"', "vocabulary: 300 ", "tied_head: true "):
            self.assertIn(part, text)
        run = self.train("second", "train.steps=3", "schedule=unset", job=self.folder / "job.pbtxt")
        self.assertIn("weights from ", run.output)
        told = json.loads(self.lockstep("export", "job.pbtxt", "--checkpoint", run.directory, "--out", "out/", "--json"))
        self.assertEqual(told["files"], ["config.json", "merges.txt", "vocab.json"])
        out = self.folder / "out"
        self.assertEqual(sorted(path.name for path in out.iterdir()),
                         ["config.json", "merges.txt", "model.safetensors", "vocab.json"])
        config = json.loads((out / "config.json").read_text(encoding="utf-8"))
        self.assertEqual({name: config[name] for name in GPT2}, GPT2)
        self.assertEqual(config["architectures"], ["GPT2LMHeadModel"])
        self.assertEqual((out / "merges.txt").read_text(encoding="utf-8"), MERGES)
        # What went out comes in again: the same weights.
        again = self.lockstep("init", "text.txt", "--model", "out", "--out", "again.pbtxt", "--context", 16)
        self.assertIn("written   again.pbtxt", again)
        still = ("train.steps=1", "optimizer={sgd {lr: 1e-30}}", "schedule=unset", *FP32)
        self.assertEqual(self.train("still", *still, job=self.folder / "again.pbtxt").digest,
                         run.summary["weights_digest"])

    def test_images_have_the_size_and_the_mean_of_the_folder(self):
        for name in ("cat", "dog"):
            (self.folder / "pets" / name).mkdir(parents=True)
            for i in range(4):
                (self.folder / "pets" / name / f"{i}.png").write_bytes(
                    png(40, 36, self.random.randbytes(3 * 40 * 36)))
        job = self.folder / "first.pbtxt"
        job.write_text("model { vit { patch: 8 layers: 1 heads: 2 width: 16 } } data { global_batch: 4 train { image_folder { "
                       "folder: 'pets' size: 32 } } } optimizer { sgd { lr: 0.1 } } train { steps: 1 }", encoding="utf-8")
        run = self.train("first", *FP32, job=job)
        self.lockstep("export", job, "--checkpoint", run.directory, "--out", "vit/")
        config = json.loads((self.folder / "vit/config.json").read_text(encoding="utf-8"))
        self.assertEqual((config["image_size"], config["id2label"]), (32, {"0": "cat", "1": "dog"}))
        (self.folder / "vit/preprocessor_config.json").write_text(
            json.dumps({"image_mean": [0.5, 0.25, 0.5], "image_std": [0.5, 0.5, 0.25]}), encoding="utf-8")
        self.assertIn("weights   all of ./vit", self.lockstep("init", "pets", "--model", "./vit", "--out", "job.pbtxt"))
        text = (self.folder / "job.pbtxt").read_text(encoding="utf-8")
        for part in ('folder: "pets" size: 32', "normalize { mean: [0.5, 0.25, 0.5] std: [0.5, 0.5, 0.25] }", "patch: 8 "):
            self.assertIn(part, text)
        self.train("second", "train.steps=1", "schedule=unset", job=self.folder / "job.pbtxt")

    def test_init_leaves_out_what_the_data_do_not_fit(self):
        hub = self.first_folder("gpt { layers: 1 heads: 2 width: 16 context: 24 vocabulary: 300 tied_head: false }",
                                {**GPT2, "tie_word_embeddings": False})
        config = {**GPT2, "n_positions": 32, "tie_word_embeddings": False}
        (hub / "config.json").write_text(json.dumps(config), encoding="utf-8")
        self.lockstep("init", "text.txt", "--model", hub, "--out", "job.pbtxt", "--context", 16)
        text = (self.folder / "job.pbtxt").read_text(encoding="utf-8")
        self.assertIn('except: "^position_embedding"   # these do not fit the data, and start anew', text)
        run = self.train("run", "train.steps=1", "schedule=unset", job=self.folder / "job.pbtxt")
        self.assertIn("initial values stay in position_embedding.weight", run.output)

    def test_what_is_no_folder_of_a_model_that_is_built_is_refused(self):
        for config, reason in (({"model_type": "qwen3"}, 'models of model_type "qwen3" are not built'),
                               ({"model_type": "llama", "rope_scaling": {"rope_type": "yarn", "factor": 2.0}},
                                'rope_scaling is of type "yarn", which is not built'),
                               ({"model_type": "gpt2", "scale_attn_by_inverse_layer_idx": True},
                                "a scale by the layer is not built"),
                               (GPT2, "no weights that can be read beside it")):
            with self.subTest(config=config):
                hub = self.hub(config, f"hub{self.random.random()}")
                self.assertIn(reason, self.lockstep("init", "text.txt", "--model", hub, "--out", "job.pbtxt", code=2))
                self.assertFalse((self.folder / "job.pbtxt").exists())
        self.assertIn("there is no such folder", self.lockstep("init", "text.txt", "--model", "no/where", code=2))
        (self.folder / "empty").mkdir()
        self.assertIn("holds no config.json", self.lockstep("init", "text.txt", "--model", "./empty", code=2))

    def test_a_folder_is_exported_whole_or_not_at_all(self):
        job = self.folder / "job.pbtxt"
        job.write_text("model { mlp { hidden: 4 } } data { global_batch: 4 train { synthetic { samples: 8 shape: [3] classes: 2 } } }"
                       "optimizer { sgd { lr: 0.1 } } train { steps: 1 }", encoding="utf-8")
        run = self.train("run", job=job)
        export = ("export", job, "--checkpoint", run.directory, "--out")
        self.assertIn("transformers has no model that is a mlp", self.lockstep(*export, "out/", code=2))
        self.assertFalse((self.folder / "out").exists())
        self.assertIn("the name must end in .safetensors, or in /", self.lockstep(*export, "out", code=2))
        self.assertIn("the folder is not empty", self.lockstep(*export, run.directory, code=2))


if __name__ == "__main__":
    unittest.main()
