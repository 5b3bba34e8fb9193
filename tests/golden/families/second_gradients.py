# SPDX-License-Identifier: Apache-2.0
"""Gradients of gradients: first ones g_i of <y, dy>, and those of sum_i <g_i, direction_i> by every input and by dy."""

import torch
from torch.nn import functional as F

from families.tensors import last, leaf, tensor


def case(function, inputs, images=False, **options):
    write = (lambda values: last(values) if values.dim() > 2 else tensor(values)) if images else tensor
    y = function(*inputs)
    dy = leaf(*y.shape)
    first = torch.autograd.grad(y, inputs, dy, create_graph=True)
    directions = [leaf(*values.shape).detach() for values in inputs]
    total = sum((gradient * direction).sum() for gradient, direction in zip(first, directions))
    second = torch.autograd.grad(total, [*inputs, dy], allow_unused=True)
    second = [torch.zeros_like(of) if found is None else found for found, of in zip(second, [*inputs, dy])]
    return {**options, "inputs": [write(values) for values in inputs], "dy": write(dy),
            "directions": [write(values) for values in directions], "first": [write(values) for values in first],
            "second": [write(values) for values in second]}


ACTIVATIONS = {"none": lambda x: x, "relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
               "tanh": torch.tanh, "sigmoid": torch.sigmoid}


def linear_case(activation, *rows):
    function = ACTIVATIONS[activation]
    return case(lambda x, weight, bias: function(F.linear(x, weight, bias)), [leaf(*rows, 4), leaf(3, 4), leaf(3)],
                activation=activation)


def conv_case(rank, size, kernel, channels=2, out=3, transposed=False, **options):
    stored = {"spatial_rank": rank, "groups": options.get("groups", 1), "transposed": transposed,
              **{name: options.get(name, [default] * rank) for name, default in
                 (("stride", 1), ("padding", 0), ("dilation", 1), ("output_padding", 0))}}
    functions = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d] if transposed else [F.conv1d, F.conv2d, F.conv3d]
    groups = stored["groups"]
    weight = leaf(channels, out // groups, *kernel) if transposed else leaf(out, channels // groups, *kernel)
    return case(lambda x, w, b: functions[rank - 1](x, w, b, **options), [leaf(2, channels, *size), weight, leaf(out)],
                images=True, **stored)


def pool_case(kind, size, window, stride, padding, count_include_pad=True):
    rank = len(size)
    if kind == "max":
        def function(x):
            return [F.max_pool1d, F.max_pool2d, F.max_pool3d][rank - 1](x, window, stride, padding)
    else:
        def function(x):
            pool = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][rank - 1]
            return pool(x, window, stride, padding, count_include_pad=count_include_pad)
    # Squared, so that the second gradient by x is not 0.
    return case(lambda x: function(x * x), [leaf(2, 2, *size)], images=True, kind=kind, spatial_rank=rank, window=window,
                stride=stride, padding=padding, count_include_pad=count_include_pad)


def batch_norm_case(training, relu, residual):
    running = torch.stack([leaf(3).detach(), leaf(3).detach().abs()])

    def function(x, gamma, beta, *rest):
        y = F.batch_norm(x, running[0].clone(), running[1].clone(), gamma, beta, training=training, eps=1e-5)
        y = y + rest[0] if residual else y
        return F.relu(y) if relu else y

    inputs = [leaf(3, 3, 2, 2), leaf(3), leaf(3)] + ([leaf(3, 3, 2, 2)] if residual else [])
    return case(function, inputs, images=True, training=training, relu=relu, residual=residual, running=tensor(running))


def cases():
    targets = torch.tensor([0, 4, 2])
    return {
        "linear": {name: linear_case(name, 3) for name in ACTIVATIONS} | {"sequence": linear_case("gelu", 2, 2)},
        "matmul": {"matrices": case(torch.matmul, [leaf(3, 4), leaf(4, 2)]),
                   "batches": case(torch.matmul, [leaf(2, 3, 4), leaf(2, 4, 2)])},
        "conv": {
            "1d": conv_case(1, [7], [3], stride=[2], padding=[1]),
            "2d": conv_case(2, [4, 5], [3, 2], padding=[1, 0]),
            "2d_dilated": conv_case(2, [6, 7], [2, 3], stride=[1, 2], padding=[0, 2], dilation=[3, 2]),
            "2d_grouped": conv_case(2, [4, 4], [3, 3], channels=4, out=6, stride=[2, 2], padding=[1, 1], groups=2),
            "3d": conv_case(3, [3, 4, 3], [2, 3, 2], stride=[1, 2, 1], padding=[1, 1, 0]),
            "transposed_1d": conv_case(1, [4], [3], transposed=True, stride=[2], padding=[1], output_padding=[1]),
            "transposed_2d_grouped": conv_case(2, [3, 3], [3, 2], channels=4, out=6, transposed=True, stride=[2, 1],
                                               padding=[1, 0], groups=2),
        },
        "pool": {
            "max_1d": pool_case("max", [7], [3], [2], [1]),
            "max_2d": pool_case("max", [5, 6], [3, 2], [2, 2], [1, 1]),
            "max_3d": pool_case("max", [4, 3, 4], [2, 2, 2], [2, 1, 2], [0, 1, 0]),
            "average_2d": pool_case("average", [5, 6], [3, 3], [2, 1], [1, 1]),
            "average_2d_without_padding": pool_case("average", [5, 6], [3, 3], [2, 2], [1, 1], False),
        },
        "global_average_pool": {"2d": case(lambda x: (x * x).mean((2, 3)), [leaf(2, 3, 4, 2)], images=True)},
        "batch_norm": {
            "plain": batch_norm_case(True, False, False),
            "relu": batch_norm_case(True, True, False),
            "relu_residual": batch_norm_case(True, True, True),
            "inference_relu": batch_norm_case(False, True, False),
        },
        "activation": {name: case(function, [leaf(3, 6)], activation=name) for name, function in ACTIVATIONS.items() if name != "none"},
        "softmax": {"softmax": case(lambda x: F.softmax(x, -1), [leaf(3, 5)], log=False),
                    "log_softmax": case(lambda x: F.log_softmax(x, -1), [leaf(3, 5)], log=True)},
        "cross_entropy": {
            name: case(lambda x: F.cross_entropy(x, targets, label_smoothing=smoothing), [leaf(3, 5)],
                       targets=tensor(targets), label_smoothing=smoothing)
            for name, smoothing in (("plain", 0.0), ("smoothed", 0.1))},
        "mse": {"both": case(F.mse_loss, [leaf(3, 4), leaf(3, 4)])},
        "broadcast": {"add": case(torch.add, [leaf(3, 4), leaf(4)], product=False),
                      "mul": case(torch.mul, [leaf(3, 4), leaf(4)], product=True)},
    }
