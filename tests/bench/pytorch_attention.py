# SPDX-License-Identifier: Apache-2.0
"""The cases of attention_bench for beside_pytorch.py."""
import pytorch_operations
from torch.nn import functional as F

FIGURES = pytorch_operations.FIGURES
NAMES = [f"{kind}/{shape}" for shape in ("2x4x512x64", "8x8x128x64") for kind in ("full", "causal")]


def target(name):
    return 1.5


def runs(name, dtype):
    kind, shape = name.split("/")
    inputs = pytorch_operations.random_inputs([tuple(map(int, shape.split("x")))] * 3, dtype)
    return pytorch_operations.runs(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=kind == "causal"),
                                   inputs)
