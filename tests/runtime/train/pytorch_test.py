# SPDX-License-Identifier: Apache-2.0
"""Weights go to PyTorch's own implementations and come from them, and graphs to ONNX; answers agree.

Needs a Python that has torch, torchvision, transformers, safetensors, onnx and onnxruntime: the variable
LOCKSTEP_PYTHON_WITH_PYTORCH names one, else it is python3. Without one the tests are skipped."""
import functools
import json
import os
import subprocess
import unittest
from pathlib import Path
from unittest import mock

from runs import FP32, LOCKSTEP, RunTest
from models import MODELS, VOCABULARY

PYTHON = os.environ.get("LOCKSTEP_PYTHON_WITH_PYTORCH", "python3")
SIDE = Path(__file__).resolve().parents[2] / "support" / "pytorch_side.py"
# Weights stay what they were: 1 - 1e-30 is 1 in float32.
STILL = ("train.steps=1", "optimizer={sgd {lr: 1e-30}}", *FP32)

IMAGES = 'arrays { features: "images.npy" targets: "classes.npy" }'
ROWS = 'arrays { features: "rows.npy" targets: "values.npy" target_kind: NUMBERS }'
MASKS = 'arrays { features: "volumes.npy" targets: "masks.npy" target_kind: NUMBERS }'
PIXELS = 'arrays { features: "images.npy" targets: "pixels.npy" }'
VOXELS = 'arrays { features: "volumes.npy" targets: "voxels.npy" }'
LABELLED_TEXT = 'arrays { features: "tokens.npy" targets: "labels.npy" vocabulary: 120 }'
TEXT = f'tokens {{ files: "text.txt" context: 16 vocabulary: {VOCABULARY} }}'
# Of what a row of MODELS learns: data, samples, what the answers are, labels.
DATA = {
    "rows": (ROWS, "rows.npy", "logits"),
    "images": (IMAGES, "images.npy", "softmax"),
    "texts": (TEXT, "tokens.npy", "argmax", "next.npy"),
    "hidden_tokens": (TEXT, "tokens.npy", "argmax", "next.npy"),
    "volumes": (MASKS, "volumes.npy", "sigmoid"),
    "pixels": (PIXELS, "images.npy", "argmax", "pixels.npy"),
}
BERT = "bert { layers: 2 heads: 2 width: 16 hidden: 24 context: 20 dropout: 0 initial_deviation: 0.3 }"
BERT_CONFIG = {"vocab_size": 120, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
               "intermediate_size": 24, "max_position_embeddings": 20, "hidden_dropout_prob": 0,
               "attention_probs_dropout_prob": 0, "layer_norm_eps": 1e-12}
OF_VOXELS = (VOXELS, "volumes.npy", "argmax", "voxels.npy")
JOB = """
name: "bridge" seed: 5
model { %s }
data { global_batch: 4 train { %s } eval { %s } }
amp { opt_level: O0 dtype: FP32 }
optimizer { sgd { lr: 0.05 } }
train { steps: 3 %s }
"""


def side(*arguments):
    return subprocess.run([PYTHON, SIDE, *map(str, arguments)], capture_output=True, encoding="utf-8", check=False,
                          env={**os.environ, "OMP_NUM_THREADS": "1", "TRANSFORMERS_VERBOSITY": "error"})


@functools.cache
def why_not(*modules):
    """Why the Python at hand will not do, or empty."""
    try:
        result = side("has", *modules)
    except OSError as error:
        return str(error)
    return result.stdout + result.stderr if result.returncode else ""


class Bridge(RunTest):
    MODULES = ("numpy",)

    def setUp(self):
        super().setUp()
        reason = why_not(*self.MODULES)
        if reason:
            self.skipTest(f"{PYTHON}: {reason}")
        self.side("arrays", self.folder)

    def side(self, *arguments):
        result = side(*arguments)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def lockstep(self, command, *arguments, code=0):
        result = subprocess.run([LOCKSTEP, command, str(self.job), *map(str, arguments)], capture_output=True,
                                encoding="utf-8", check=False)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def trained(self, model, data, settings="", *overrides):
        self.job = self.folder / "job.pbtxt"
        self.job.write_text(JOB % (model, data, data, settings), encoding="utf-8")
        # Its own run, beside those that this test has made before.
        self.runs = getattr(self, "runs", 0) + 1
        return self.train(f"run{self.runs}", *overrides, job=self.job)

    def answers(self, run):
        out = self.folder / "answers.npy"
        self.lockstep("infer", "--checkpoint", run.directory, "--device", "cpu", "--out", out)
        return out


class Weights(Bridge):
    MODULES = ("torch", "torchvision", "transformers", "safetensors.torch")

    def check_both_ways(self, model, kind, config, data, samples, form):
        # Out: what was trained here answers there as here.
        run = self.trained(model, data)
        exported = self.folder / "exported.safetensors"
        self.lockstep("export", "--checkpoint", run.directory, "--out", exported)
        samples = self.folder / samples
        self.side("load", kind, json.dumps(config), exported, samples, self.answers(run), form)
        # In: what was made there answers here as there.
        folder = self.folder / f"theirs{self.runs}"
        folder.mkdir()
        logits = self.folder / "logits.npy"
        self.side("save", kind, json.dumps(config), folder, samples, logits)
        index = folder / "model.safetensors.index.json"
        source = index if index.exists() else folder / "model.safetensors"
        # Running statistics stay what they were, too.
        norms = any(name.endswith(".running") for name in run.tensors())
        still = (*STILL, f"model.{model.split()[0]}.batch_norm_momentum=0") if norms else STILL
        into = self.train(f"into{self.runs}", *still, f"init_from.path={source}", job=self.job)
        self.side("same", logits, self.answers(into), form)
        if form == "argmax":
            self.side("loss", logits, self.folder / "next.npy", into.summary["eval"]["loss"])

    def test_every_model_is_pytorchs(self):
        for name, model in MODELS.items():
            if model.theirs is None:
                continue
            with self.subTest(name):
                data, samples, form, *_ = DATA[model.data]
                self.check_both_ways(f"{name} {{ {model.options} }}", model.theirs.kind, model.theirs.config, data, samples,
                                     form)

    def test_a_gpt_without_biases_is_hugging_faces(self):
        run = self.trained("gpt { layers: 1 heads: 2 width: 16 context: 16 bias: false tied_head: false "
                           "initial_deviation: 0.3 }", TEXT)
        exported = self.folder / "exported.safetensors"
        self.lockstep("export", "--checkpoint", run.directory, "--out", exported)
        config = {"vocab_size": 120, "n_positions": 16, "n_embd": 16, "n_layer": 1, "n_head": 2,
                  "tie_word_embeddings": False}
        self.side("load", "GPT2LMHeadModel", json.dumps(config), exported, self.folder / "tokens.npy", self.answers(run),
                  "argmax")

    def test_a_vit_with_another_classifier_says_what_it_has_left(self):
        config = {"image_size": 32, "patch_size": 8, "num_layers": 1, "num_heads": 2, "hidden_dim": 16, "mlp_dim": 24,
                  "num_classes": 7}
        self.side("save", "VisionTransformer", json.dumps(config), self.folder, self.folder / "images.npy",
                  self.folder / "logits.npy")
        source = f"init_from.path={self.folder}/model.safetensors"
        model = "vit { patch: 8 layers: 1 heads: 2 width: 16 hidden: 24 }"
        run = self.trained(model, IMAGES, "", source, "init_from.except=['^classifier']")
        self.assertIn("initial values stay in classifier.bias, classifier.weight", run.output)
        self.assertIn("not used: classifier.bias, classifier.weight", run.output)
        refused = self.train("refused", source, job=self.job, code=2)
        self.assertRegex(refused.output, r"classifier.weight +\[7, 16\] +\[5, 16\]")

    def test_bert_of_masked_tokens_is_hugging_faces(self):
        self.check_both_ways(BERT, "BertForMaskedLM", BERT_CONFIG, TEXT, "tokens.npy", "argmax")

    def test_bert_of_classes_is_hugging_faces(self):
        self.check_both_ways(BERT, "BertForSequenceClassification", {**BERT_CONFIG, "num_labels": 3}, LABELLED_TEXT,
                             "tokens.npy", "softmax")


class HubFolders(Bridge):
    """init, train and export between folders of transformers; logits of both sides are compared."""
    MODULES = ("torch", "torchvision", "transformers", "safetensors.torch")

    def logits(self, run, samples):
        out = self.folder / "ours.npy"
        subprocess.run([Path(LOCKSTEP).with_name("train_logits"), self.job, run.directory, self.folder / samples, out],
                       check=True)
        return out

    def check(self, kind, auto, config, data, samples):
        hub, theirs = self.folder / "hub", self.folder / "theirs.npy"
        hub.mkdir()
        self.side("save", kind, json.dumps(config), hub, self.folder / samples, theirs)
        self.job = self.folder / "hub.pbtxt"
        subprocess.run([LOCKSTEP, "init", *data, "--model", "./hub", "--context", "16", "--out", "hub.pbtxt"],
                       cwd=self.folder, check=True, capture_output=True)
        still = self.train("still", *STILL, "schedule=unset", job=self.job)
        self.side("same", theirs, self.logits(still, samples), "logits")
        trained = self.train("trained", "train.steps=5", "schedule=unset", *FP32, job=self.job)
        self.lockstep("export", "--checkpoint", trained.directory, "--out", f"{self.folder}/out/")
        self.side("pretrained", auto, self.folder / "out", self.folder / samples, self.logits(trained, samples))

    def check_text(self, kind, auto, **config):
        self.check(kind, auto, {"vocab_size": 300, **config}, ["text.txt"], "tokens.npy")

    LLAMA = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
             "max_position_embeddings": 32}

    def test_gpt2_goes_both_ways(self):
        self.check_text("GPT2LMHeadModel", "AutoModelForCausalLM", n_positions=24, n_embd=64, n_layer=2, n_head=4)

    def test_llama2_goes_both_ways(self):
        self.check_text("LlamaForCausalLM", "AutoModelForCausalLM", rms_norm_eps=1e-5, **self.LLAMA)

    def test_llama3_goes_both_ways(self):
        rope = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": 16}
        self.check_text("LlamaForCausalLM", "AutoModelForCausalLM", num_key_value_heads=2, rms_norm_eps=1e-5,
                        tie_word_embeddings=True, rope_parameters=rope, **self.LLAMA)

    def test_a_llama_with_wide_heads_goes_both_ways(self):
        rope = {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}
        self.check_text("LlamaForCausalLM", "AutoModelForCausalLM", head_dim=24, attention_bias=True, rope_parameters=rope,
                        **self.LLAMA)

    def test_mistral_goes_both_ways(self):
        self.check_text("MistralForCausalLM", "AutoModelForCausalLM", num_key_value_heads=2, sliding_window=16, **self.LLAMA)

    def test_bert_goes_both_ways(self):
        self.check_text("BertForMaskedLM", "AutoModelForMaskedLM", hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                        num_attention_heads=4, max_position_embeddings=24)

    def test_vit_goes_both_ways(self):
        config = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
                  "image_size": 32, "patch_size": 8, "num_labels": 5}
        self.check("ViTForImageClassification", "AutoModelForImageClassification", config, ["images.npy", "classes.npy"],
                   "images.npy")


class Onnx(Bridge):
    MODULES = ("onnx", "onnxruntime")

    def check(self, model, data, samples, form, labels=None, settings=""):
        run = self.trained(model, data, settings)
        graph, logits = self.folder / "graph.onnx", self.folder / "logits.npy"
        self.lockstep("export", "--checkpoint", run.directory, "--onnx", graph)
        self.side("onnx", graph, self.folder / samples, self.answers(run), form, logits)
        if labels:
            # Of answers that are classes the logits are told by their loss.
            self.side("loss", logits, self.folder / labels, run.summary["eval"]["loss"])

    def test_every_model(self):
        for name, model in MODELS.items():
            with self.subTest(name):
                self.check(f"{name} {{ {model.options} }}", *DATA[model.data], settings=model.train)

    def test_normalised_targets_are_undone(self):
        job = JOB.replace("data {", "data { normalize_target { mean: 500 std: 20 }")
        with mock.patch.dict(globals(), JOB=job):
            self.check("mlp { hidden: 8 }", *DATA["rows"])

    def test_mlp_of_images(self):
        self.check("mlp { hidden: [9] activation: GELU_TANH }", IMAGES, "images.npy", "softmax")

    def test_mlp_of_a_table_with_embedded_words(self):
        for numbers in (True, False):
            with self.subTest(numbers=numbers):
                self.side("table", self.folder / "table.csv", self.folder / "table.npz", str(numbers))
                self.check("mlp { hidden: 9 }", 'csv { files: "table.csv" target_kind: NUMBERS words: ONE_HOT one_hot_up_to: 0 }',
                           "table.npz", "logits")

    def test_convnet(self):
        self.check("convnet { block { channels: 6 max_pool: 2 } block { channels: 8 stride: 2 batch_norm: false "
                   "activation: GELU_TANH } head_pool: FLATTEN hidden: [12] dropout: 0.2 }", IMAGES, "images.npy", "softmax")

    def test_resnet_of_bottlenecks(self):
        self.check("resnet { depth: 50 width: 8 stem: CIFAR }", IMAGES, "images.npy", "softmax")

    def test_unet3d_of_classes(self):
        self.check("unet3d { levels: 1 channels: 4 up: TRILINEAR norm: GROUP groups: 2 }", *OF_VOXELS)

    def test_unet3d_with_instance_norms(self):
        self.check("unet3d { levels: 1 channels: 4 norm: INSTANCE }", *OF_VOXELS)

    def test_unet2d_with_group_norms(self):
        self.check("unet2d { levels: 1 channels: 4 up: BILINEAR norm: GROUP groups: 2 }", *DATA["pixels"])

    def test_bert_of_padded_texts(self):
        self.check(BERT.replace("dropout: 0", "pad_token: 100"), *DATA["hidden_tokens"])


if __name__ == "__main__":
    unittest.main()
