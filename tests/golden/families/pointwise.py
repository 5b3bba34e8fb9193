# SPDX-License-Identifier: Apache-2.0
"""Functions of one, two and three numbers: values, gradients and gradients of gradients."""

import torch
from torch.nn import functional as F

from families.tensors import leaf, tensor


def case(function, *inputs):
    """The result, its gradients for dy, and those of the sum of their products with `directions`."""
    y = function(*inputs)
    dy = leaf(*y.shape)
    gradients = torch.autograd.grad(y, inputs, dy, create_graph=True)
    directions = [torch.randn(x.shape).round(decimals=4) for x in inputs]
    total = sum((gradient * direction).sum() for gradient, direction in zip(gradients, directions))
    second = [None] * len(inputs)
    if total.requires_grad:
        second = torch.autograd.grad(total, inputs, allow_unused=True)
    # PyTorch has zeros without memory, which cannot be read.
    second = [torch.zeros_like(x) + (0 if gradient is None else gradient) for x, gradient in zip(inputs, second)]
    return {
        "inputs": [tensor(x) for x in inputs], "y": tensor(y), "dy": tensor(dy),
        "gradients": [tensor(gradient) for gradient in gradients],
        "directions": [tensor(direction) for direction in directions],
        "second_gradients": [tensor(gradient) for gradient in second],
    }


def between(low, high, *shape):
    return (low + (high - low) * torch.rand(shape)).round(decimals=4).requires_grad_()


def unary():
    everywhere = ["neg", "abs", "exp", "expm1", "sin", "cos", "sinh", "cosh", "erf", "tanh", "sigmoid"]
    positive = ["sqrt", "rsqrt", "reciprocal", "log", "log1p", "log2", "log10"]
    inside = ["tan", "asin", "acos"]
    cases = {name: case(getattr(torch, name), between(-3, 3, 3, 5)) for name in everywhere}
    cases |= {name: case(getattr(torch, name), between(0.2, 4, 3, 5)) for name in positive}
    cases |= {name: case(getattr(torch, name), between(-0.95, 0.95, 3, 5)) for name in inside}
    cases |= {
        "relu": case(F.relu, between(-3, 3, 3, 5)),
        "gelu": case(F.gelu, between(-3, 3, 3, 5)),
        "gelu_tanh": case(lambda x: F.gelu(x, approximate="tanh"), between(-3, 3, 3, 5)),
        "silu": case(F.silu, between(-6, 6, 3, 5)),
        "leaky_relu": case(lambda x: F.leaky_relu(x, 0.2), between(-3, 3, 3, 5)),
        "elu": case(lambda x: F.elu(x, 1.5), between(-3, 3, 3, 5)),
        "softplus": case(lambda x: F.softplus(x, 2, 3), between(-3, 3, 3, 5)),
        "clamp": case(lambda x: torch.clamp(x, -1, 0.5), between(-3, 3, 3, 5)),
        "pow_number": case(lambda x: x**2.5, between(0.2, 3, 3, 5)),
        "number_pow": case(lambda x: 2.5**x, between(-3, 3, 3, 5)),
        "number_div": case(lambda x: 2.5 / x, between(0.5, 3, 3, 5)),
        "number_sub": case(lambda x: 2.5 - x, between(-3, 3, 3, 5)),
    }
    return cases


SHAPES = {"same": ((3, 4), (3, 4)), "row": ((3, 4), (4,)), "column": ((3, 4), (3, 1)), "outer": ((3, 1), (1, 4)),
          "scalar": ((), (2, 3)), "dimensions": ((2, 1, 3, 1), (4, 1, 2)), "empty": ((0, 4), (4,))}


def binary():
    functions = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "pow": torch.pow,
                 "maximum": torch.maximum, "minimum": torch.minimum}
    return {f"{name}_{shape}": case(function, between(0.3, 3, *of_a), between(0.4, 2, *of_b))
            for name, function in functions.items() for shape, (of_a, of_b) in SHAPES.items()}


def ternary():
    return {
        "lerp": case(torch.lerp, leaf(3, 4), leaf(3, 4), leaf(4)),
        "addcmul": case(lambda a, b, c: torch.addcmul(a, b, c, value=0.75), leaf(3, 4), leaf(3, 1), leaf(4)),
        "addcdiv": case(lambda a, b, c: torch.addcdiv(a, b, c, value=0.75), leaf(3, 4), leaf(3, 4),
                        between(0.5, 2, 4)),
        "where": case(lambda a, b, c: torch.where(a.detach() > 0, a * b, c), leaf(3, 4), leaf(4), leaf(3, 1)),
        "clamp": case(torch.clamp, leaf(5, 4), between(-1, -0.1, 4), between(0.1, 1, 4)),
    }


def prelu():
    channels_last = lambda x, weight: F.prelu(x.movedim(-1, 1), weight).movedim(1, -1)  # noqa: E731
    return {"channels": case(channels_last, leaf(2, 3, 4), leaf(4)), "one": case(channels_last, leaf(2, 3, 4), leaf(1))}


def later_unary():
    """What was added later: the random numbers of the cases above stay."""
    cases = {name: case(getattr(torch, name), between(-3, 3, 3, 5))
             for name in ["atan", "sign", "floor", "ceil", "round", "trunc"]}
    return cases | {"erfinv": case(torch.erfinv, between(-0.95, 0.95, 3, 5))}


def cases():
    groups = {"unary": unary(), "binary": binary(), "ternary": ternary(), "prelu": prelu()}
    groups["unary"] |= later_unary()
    groups["binary"] |= {f"atan2_{shape}": case(torch.atan2, between(-3, 3, *of_a), between(-2, 2, *of_b))
                         for shape, (of_a, of_b) in SHAPES.items()}
    return groups
