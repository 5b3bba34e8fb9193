# SPDX-License-Identifier: Apache-2.0
"""Differentiable operations as operation_cases.h measures them."""
import torch

FIGURES = {"": 0, "with backward": 1}


def random_inputs(shapes, dtype):
    return [torch.rand(shape).mul(2).sub(1).to(dtype) for shape in shapes]


def runs(operation, inputs, differentiated=None):
    """The forward pass, and that with the backward pass; the first `differentiated` inputs, or all, get gradients."""
    yield lambda: operation(*inputs)
    leaves = [tensor.detach().requires_grad_() for tensor in inputs[:differentiated]]
    all_inputs = leaves + inputs[len(leaves):]
    dy = torch.rand_like(operation(*all_inputs).detach())
    yield lambda: torch.autograd.grad(operation(*all_inputs), leaves, dy)
