# SPDX-License-Identifier: Apache-2.0
"""The pointwise loops of loops_bench for beside_pytorch.py. Results are written into a tensor that is there (out=), as
a kernel's are."""
import json
import os
import subprocess

import torch

FIGURES = {"": 0}
SHAPE = (2048, 64)


def operations(dtype):
    x, y, w = (torch.ones(SHAPE, dtype=dtype) for _ in range(3))
    z, mask = torch.empty_like(x), torch.ones(SHAPE, dtype=torch.bool)
    steps = torch.arange(SHAPE[0] * SHAPE[1]) * 2654435761 % 1000 / 1000
    positive, mixed = ((low + (1 - low) * steps).reshape(SHAPE).to(dtype) for low in (0.1, -1))
    row, column = torch.ones(SHAPE[1], dtype=dtype), torch.ones((SHAPE[0], 1), dtype=dtype)
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


NAMES = [name for name, _ in operations(torch.float32)]


def target(name):
    return 1


def runs(name, dtype):
    return [dict(operations(dtype))[name]]


def figures(program, name):
    """Milliseconds by dtype, from Google Benchmark's report."""
    only = f"^{name}/.{', '.join(map(str, SHAPE))}./"
    report = subprocess.run([program, f"--benchmark_filter={only}", "--benchmark_format=json",
                             "--benchmark_min_time=0.1", "--benchmark_repetitions=5",
                             "--benchmark_report_aggregates_only"],
                            check=True, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}).stdout
    return {run["run_name"].split("/")[2]: [1e-6 * run["cpu_time"]] for run in json.loads(report)["benchmarks"]
            if run["aggregate_name"] == "median"}
