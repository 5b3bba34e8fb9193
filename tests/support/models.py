# SPDX-License-Identifier: Apache-2.0
"""Every model of the zoo, for what trains each of them: scripts/digests, tests/runtime/train/pytorch_test.py and
tests/bench/pytorch_models.py. Imports nothing that a plain Python lacks."""
import dataclasses

CLASSES = 5  # of the tests' data
VOCABULARY = 120


@dataclasses.dataclass(frozen=True)
class Theirs:
    """PyTorch's own implementation."""
    kind: str     # a function of torchvision.models, or a class of transformers
    config: dict  # its arguments


@dataclasses.dataclass(frozen=True)
class Bench:
    """Sizes as people train them, for images; without dropout, whose masks differ from PyTorch's."""
    options: str
    extents: tuple
    batch: int
    theirs: Theirs
    adamw: bool = False  # otherwise SGD


@dataclasses.dataclass(frozen=True)
class Model:
    options: str         # a small one, with dropout where the model has it
    data: str            # what it learns: rows, images, texts, hidden_tokens, volumes or pixels
    optimizer: str       # they differ, so that scripts/digests sees each
    train: str = ""
    theirs: Theirs = None  # with the same sizes
    bench: Bench = None


MODELS = {
    "mlp": Model("hidden: [48, 40] dropout: 0.1 batch_norm: true", "rows", "adagrad { lr: 0.01 }"),
    "convnet": Model("block { channels: 12 } block { channels: 20 stride: 2 max_pool: 2 dropout: 0.1 } hidden: 24", "images",
                     "sgd { lr: 0.05 momentum: 0.9 weight_decay: 5e-4 }"),
    "resnet": Model("depth: 18", "images", "lars { lr: 0.5 momentum: 0.9 }",
                    theirs=Theirs("resnet18", {"num_classes": CLASSES}),
                    bench=Bench("depth: 18", (64, 64, 3), 16, Theirs("resnet18", {"num_classes": 10}))),
    "mobilenet_v2": Model("width: 0.5 dropout: 0.1", "images", "rmsprop { lr: 1e-3 momentum: 0.9 }",
                          theirs=Theirs("mobilenet_v2", {"num_classes": CLASSES, "width_mult": 0.5}),
                          bench=Bench("dropout: 0", (64, 64, 3), 16, Theirs("mobilenet_v2", {"num_classes": 10, "dropout": 0}))),
    "gpt": Model("layers: 2 heads: 4 width: 64 context: 24 dropout: 0.1 initial_deviation: 0.3", "texts", "adamw { lr: 1e-3 }",
                 theirs=Theirs("GPT2LMHeadModel", {"vocab_size": VOCABULARY, "n_positions": 24, "n_embd": 64, "n_layer": 2,
                                                   "n_head": 4})),
    "llama": Model("layers: 2 heads: 4 kv_heads: 2 width: 64 hidden: 96 context: 24 initial_deviation: 0.3", "texts",
                   "adam { lr: 1e-3 }",
                   theirs=Theirs("LlamaForCausalLM", {
                       "vocab_size": VOCABULARY, "max_position_embeddings": 24, "hidden_size": 64, "intermediate_size": 96,
                       "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-5})),
    "unet3d": Model("levels: 2 channels: 8", "volumes", "novograd { lr: 1e-3 }", train="loss: BCE_DICE"),
    "unet2d": Model("levels: 2 channels: 8", "pixels", "adamw { lr: 1e-3 }"),
    "bert": Model("layers: 2 heads: 4 width: 64 context: 24 initial_deviation: 0.3", "hidden_tokens", "lamb { lr: 1e-3 }"),
    "vit": Model("patch: 4 layers: 2 heads: 4 width: 64 dropout: 0.1", "images", "adamw { lr: 1e-3 }",
                 theirs=Theirs("VisionTransformer", {"image_size": 32, "patch_size": 4, "num_layers": 2, "num_heads": 4,
                                                     "hidden_dim": 64, "mlp_dim": 256, "num_classes": CLASSES}),
                 bench=Bench("patch: 4 layers: 4 heads: 4 width: 192", (32, 32, 3), 32,
                             Theirs("VisionTransformer", {"image_size": 32, "patch_size": 4, "num_layers": 4, "num_heads": 4,
                                                          "hidden_dim": 192, "mlp_dim": 768, "num_classes": 10}), adamw=True)),
}
