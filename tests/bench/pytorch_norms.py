# SPDX-License-Identifier: Apache-2.0
"""The cases of norms_bench for beside_pytorch.py. Images lie channels last in both."""
import pytorch_operations
import torch
from torch.nn import functional as F

FIGURES = pytorch_operations.FIGURES


def rows(operation, shape, affine):
    return operation, [shape] + [shape[-1:]] * affine, None


def images(operation, shape, affine):
    return operation, [shape] + [shape[-1:]] * affine, "channels first"


def cases():
    for shape in ((512, 768), (4096, 256), (2048, 4096)):
        size = "x".join(map(str, shape))
        yield f"layer_norm/{size}", rows(lambda x, w, b: F.layer_norm(x, w.shape, w, b), shape, 2)
        yield f"rms_norm/{size}", rows(lambda x, w: F.rms_norm(x, w.shape, w), shape, 1)
    for shape in ((8, 28, 28, 128), (4, 56, 56, 256)):
        size = "x".join(map(str, shape))
        yield f"group_norm/{size}", images(lambda x, w, b: F.group_norm(x, 32, w, b), shape, 2)
        yield f"instance_norm/{size}", images(lambda x, w, b: F.instance_norm(x, weight=w, bias=b), shape, 2)
    for n, table, width in ((4096, 1000, 512), (4096, 30000, 256)):
        index = torch.randint(table, (n,))
        yield f"embedding/{n}of{table}x{width}", rows(lambda w, index=index: F.embedding(index, w), (table, width), 0)
    for name, shape in (("nearest", (8, 32, 32, 64)), ("nearest", (8, 64, 64, 3)), ("linear", (8, 512, 64)),
                        ("bilinear", (8, 32, 32, 64)), ("bilinear", (8, 64, 64, 3)), ("trilinear", (2, 16, 16, 16, 32))):
        yield (f"upsample_{name}/{'x'.join(map(str, shape))}",
               images(lambda x, name=name: F.interpolate(x, scale_factor=2, mode=name), shape, 0))


CASES = dict(cases())
NAMES = list(CASES)


def target(name):
    return 1 if name.startswith("upsample") else 1.5


def runs(name, dtype):
    operation, shapes, layout = CASES[name]
    inputs = pytorch_operations.random_inputs(shapes, dtype)
    if layout:
        inputs[0] = inputs[0].movedim(-1, 1)  # the same memory, seen channels first
    return pytorch_operations.runs(operation, inputs)
