#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's pointwise operations on one thread, as loops_bench measures Lockstep's, in ns of processor time an element. With the output of
loops_bench --benchmark_format=json as argument, both side by side.

Run it where torch is installed. Results are written into a tensor that is there (out=), as a kernel's are.
"""

import json
import sys
import time

import torch

torch.set_num_threads(1)
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
SHAPE = (50000, 256) if "--memory" in sys.argv else (2048, 64)


def operations(dtype):
    x, y, w = (torch.ones(SHAPE, dtype=dtype) for _ in range(3))
    z, mask = torch.empty_like(x), torch.ones(SHAPE, dtype=torch.bool)
    steps = torch.arange(SHAPE[0] * SHAPE[1]) * 2654435761 % 1000 / 1000
    positive, mixed = ((low + (1 - low) * steps).reshape(SHAPE).to(dtype) for low in (0.1, -1))
    row, column = torch.ones(SHAPE[1], dtype=dtype), torch.ones((SHAPE[0], 1), dtype=dtype)
    functional = torch.nn.functional
    for name in ("neg", "abs", "sqrt", "rsqrt", "reciprocal", "exp", "expm1", "log", "log1p", "log2", "log10", "sin",
                 "cos", "tan", "sinh", "cosh", "asin", "acos", "erf", "tanh", "sigmoid"):
        yield name, lambda f=getattr(torch, name): f(positive, out=z)
    yield "silu", lambda: torch.ops.aten.silu.out(positive, out=z)
    yield "gelu", lambda: torch.ops.aten.gelu.out(x, out=z)
    yield "leaky_relu", lambda: torch.ops.aten.leaky_relu.out(mixed, 0.01, out=z)
    yield "elu", lambda: torch.ops.aten.elu.out(mixed, out=z)
    yield "softplus", lambda: torch.ops.aten.softplus.out(mixed, out=z)
    yield "clamp", lambda: torch.clamp(mixed, -0.5, 0.5, out=z)
    yield "exp_backward", lambda: torch.mul(positive, y, out=z)
    yield "silu_backward", lambda: torch.ops.aten.silu_backward.grad_input(y, mixed, grad_input=z)
    yield "add", lambda: torch.add(x, y, out=z)
    yield "div", lambda: torch.div(x, y, out=z)
    yield "maximum", lambda: torch.maximum(positive, mixed, out=z)
    yield "pow", lambda: torch.pow(positive, mixed, out=z)
    yield "pow_1.7", lambda: torch.pow(positive, 1.7, out=z)
    yield "add_number", lambda: torch.add(x, 0.5, out=z)
    yield "add_row", lambda: torch.add(x, row, out=z)
    yield "add_column", lambda: torch.add(x, column, out=z)
    yield "sub_row_from_column", lambda: torch.sub(column, row, out=z)
    yield "less", lambda: torch.lt(positive, mixed, out=mask)
    yield "where", lambda: torch.where(mask, x, y, out=z)
    yield "addcmul", lambda: torch.addcmul(x, y, w, out=z)
    yield "uniform", lambda: z.uniform_()
    yield "normal", lambda: z.normal_()


def ns_an_element(run):
    """The median of trains of about 20 ms."""
    elements = SHAPE[0] * SHAPE[1]
    run()
    start = time.process_time()
    run()
    runs = max(1, int(0.02 / max(time.process_time() - start, 1e-7)))
    times = []
    for _ in range(7):
        start = time.process_time()
        for _ in range(runs):
            run()
        times.append((time.process_time() - start) / runs)
    return 1e9 * sorted(times)[len(times) // 2] / elements


def lockstep(path):
    """ns an element by (name, dtype), the median where there are several runs."""
    found = {}
    with open(path) as file:
        for run in json.load(file)["benchmarks"]:
            name, shape, dtype = run["run_name"].split("/")
            if shape == str(list(SHAPE)) and run.get("aggregate_name", "median") == "median":
                found[name, dtype] = run["cpu_time"] / (SHAPE[0] * SHAPE[1])
    return found


def main():
    paths = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    ours = lockstep(paths[0]) if paths else {}
    with torch.no_grad():
        for dtype, torch_dtype in DTYPES.items():
            for name, run in operations(torch_dtype):
                theirs = ns_an_element(run)
                mine = ours.get((name, dtype))
                beside = f"  lockstep {mine:7.3f}  {theirs / mine:5.2f}x" if mine else ""
                print(f"{name:20} {dtype:9} pytorch {theirs:7.3f}{beside}", flush=True)


if __name__ == "__main__":
    main()
