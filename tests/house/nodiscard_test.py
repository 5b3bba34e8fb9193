#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A result that nobody uses, and a guard that nobody names, is a warning of the compiler: it would do nothing."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

HEADERS = ("amp/autocast/autocast.h", "comm/ddp/distributed_data_parallel.h", "runtime/autograd/engine.h",
           "runtime/autograd/grad_mode.h", "runtime/nn/step_context.h", "runtime/ops/ops.h")

# Each a mistake that compiles.
DISCARDED = (
    "amp::Autocast(x.dtype());",
    "amp::Autocast(false);",
    "autograd::NoGrad();",
    "autograd::GradMode(false);",
    "nn::StepContext(1, 0);",
    "MemoryScope(MemoryPurpose{});",
    "ddp.no_sync();",
    "comm::DistributedDataParallel::NoSync(ddp, true);",
    "x.detach();",
    "x.reshaped({1});",
    "x.rows(0, 1);",
    "x.to(kCpu);",
    "x.grad();",
    "x.defined();",
    "x.as<float>();",
    "Tensor::empty({1}, DType::kFloat32);",
    "ops::add(x, x);",
    "ops::relu(x);",
    "ops::linear(x, x, {});",
    "ops::cross_entropy(x, x);",
    "ops::max(x, 0);",
    "ops::split(x, 1);",
    "ops::cast(x, DType::kFloat16);",
    "ops::ones({1});",
    "x + x;",
    "autograd::grad(x, {x});",
)
# What is called for what it does.
USED = (
    "const amp::Autocast autocast(DType::kFloat16);",
    "const autograd::NoGrad unrecorded;",
    "const auto local = ddp.no_sync();",
    "x.copy_from(x);",
    "x.set_requires_grad(true);",
    "x.backward();",
    "x.bump_version();",
    "const Tensor y = ops::add(x, x);",
)


def warned(statements):
    """The statements that the compiler warns of."""
    lines = [f'#include "{header}"' for header in HEADERS]
    lines += ["using namespace lockstep;", "void f(comm::DistributedDataParallel& ddp, const Tensor& x) {"]
    lines += [f"{{ {statement} }}" for statement in statements] + ["}"]
    command = os.environ["LOCKSTEP_CXX"].split() + ["-std=c++20", "-fsyntax-only", "-I", str(ROOT), "-x", "c++", "-"]
    found = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False, timeout=300)
    if found.returncode != 0:
        raise AssertionError(found.stderr)
    numbers = {int(number) for number in re.findall(r"<stdin>:(\d+):\d+: warning: ignoring", found.stderr)}
    return [line[2:-2] for number, line in enumerate(lines, 1) if number in numbers]


class NoDiscard(unittest.TestCase):
    def test_what_is_computed_and_not_used_is_warned_of(self):
        self.assertEqual(warned(DISCARDED), list(DISCARDED))

    def test_what_is_done_is_not(self):
        self.assertEqual(warned(USED), [])


if __name__ == "__main__":
    sys.exit(unittest.main())
