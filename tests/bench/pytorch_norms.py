#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cases of norms_bench beside PyTorch's, one thread each, in turns: pytorch_norms.py build/release/bin/norms_bench

Images lie channels last in both. Prints the milliseconds of forward, and of forward and backward, and how many times
PyTorch's are Lockstep's. Medians over the rounds.
"""

import os
import statistics
import subprocess
import sys
import time

import torch
from torch.nn import functional as F

torch.set_num_threads(1)
ROUNDS = int(os.environ.get("ROUNDS", "3"))


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


def seconds(run):
    run(), run()
    start = time.perf_counter()
    run()
    runs = max(1, min(10000, int(0.05 / (time.perf_counter() - start))))
    trains = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(runs):
            run()
        trains.append((time.perf_counter() - start) / runs)
    return statistics.median(trains)


def measure(operation, shapes, layout, dtype):
    inputs = [torch.rand(shape).mul(2).sub(1).to(dtype) for shape in shapes]
    if layout:
        inputs[0] = inputs[0].movedim(-1, 1)  # the same memory, seen channels first
    with torch.no_grad():
        forward = seconds(lambda: operation(*inputs))
    inputs = [tensor.detach().requires_grad_() for tensor in inputs]
    dy = torch.rand_like(operation(*inputs).detach())
    both = seconds(lambda: torch.autograd.grad(operation(*inputs), inputs, dy))
    return forward * 1e3, both * 1e3


def main(bench):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for name, (operation, shapes, layout) in cases():
        if len(sys.argv) > 2 and not any(part in name for part in sys.argv[2:]):
            continue
        ours, theirs = {}, {}
        for _ in range(ROUNDS):
            for line in subprocess.check_output([bench, name], text=True, env=environment).splitlines():
                _, dtype, forward, both = line.split()
                ours.setdefault(dtype, []).append((float(forward), float(both)))
            for dtype in (torch.float32, torch.bfloat16, torch.float16):
                theirs.setdefault(str(dtype)[6:], []).append(measure(operation, shapes, layout, dtype))
        for dtype in ours:
            mine, other = ([statistics.median(column) for column in zip(*rounds[dtype])] for rounds in (ours, theirs))
            print(f"{name:34} {dtype:9} forward {mine[0]:8.3f} {other[0]:8.3f} {other[0] / mine[0]:6.2f}x"
                  f"   with backward {mine[1]:8.3f} {other[1]:8.3f} {other[1] / mine[1]:6.2f}x", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
