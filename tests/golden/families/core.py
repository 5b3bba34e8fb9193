# SPDX-License-Identifier: Apache-2.0
"""Convolution, pooling, batch norm, activations, losses, SGD and Adam."""

import torch
from torch.nn import functional as F

from families.tensors import last, leaf, tensor


def conv_case(rank, batch, channels, out, size, kernel, **options):
    x, weight, bias = leaf(batch, channels, *size), leaf(out, channels // options.get("groups", 1), *kernel), leaf(out)
    y = [F.conv1d, F.conv2d, F.conv3d][rank - 1](x, weight, bias, **options)
    dy = leaf(*y.shape)
    y.backward(dy)
    return {
        "spatial_rank": rank,
        **{name: options.get(name, [default] * rank) for name, default in
           (("stride", 1), ("padding", 0), ("dilation", 1))},
        "groups": options.get("groups", 1),
        "x": last(x), "weight": last(weight), "bias": tensor(bias), "y": last(y), "dy": last(dy),
        "dx": last(x.grad), "dweight": last(weight.grad), "dbias": tensor(bias.grad),
    }


def conv_transpose_case(rank, batch, channels, out, size, kernel, **options):
    x, weight = leaf(batch, channels, *size), leaf(channels, out // options.get("groups", 1), *kernel)
    bias = leaf(out)
    y = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][rank - 1](x, weight, bias, **options)
    dy = leaf(*y.shape)
    y.backward(dy)
    return {
        "spatial_rank": rank,
        **{name: options.get(name, [default] * rank) for name, default in
           (("stride", 1), ("padding", 0), ("dilation", 1), ("output_padding", 0))},
        "groups": options.get("groups", 1),
        "x": last(x), "weight": last(weight), "bias": tensor(bias), "y": last(y), "dy": last(dy),
        "dx": last(x.grad), "dweight": last(weight.grad), "dbias": tensor(bias.grad),
    }


def pool_case(kind, rank, size, window, stride, padding, count_include_pad=True):
    x = leaf(2, 2, *size)
    case = {"kind": kind, "spatial_rank": rank, "window": window, "stride": stride, "padding": padding,
            "count_include_pad": count_include_pad}
    if kind == "max":
        pool = [F.max_pool1d, F.max_pool2d, F.max_pool3d][rank - 1]
        y, indices = pool(x, window, stride, padding, return_indices=True)
        case["indices"] = last(indices)
    else:
        pool = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][rank - 1]
        y = pool(x, window, stride, padding, count_include_pad=count_include_pad)
    dy = leaf(*y.shape)
    y.backward(dy)
    return {**case, "x": last(x), "y": last(y), "dy": last(dy), "dx": last(x.grad)}


def batch_norm_case(relu, residual):
    x, gamma, beta = leaf(3, 4, 2, 3), leaf(4), leaf(4)
    shortcut = leaf(3, 4, 2, 3) if residual else None
    running = torch.stack([leaf(4).detach(), leaf(4).detach().abs()])
    next_running = running.clone()
    y = F.batch_norm(x, next_running[0], next_running[1], gamma, beta, training=True, momentum=0.1, eps=1e-5)
    if residual:
        y = y + shortcut
    if relu:
        y = F.relu(y)
    dy = leaf(*y.shape)
    y.backward(dy)
    case = {"relu": relu, "x": last(x), "gamma": tensor(gamma), "beta": tensor(beta), "running": tensor(running),
            "next_running": tensor(next_running), "y": last(y), "dy": last(dy),
            "dx": last(x.grad), "dgamma": tensor(gamma.grad), "dbeta": tensor(beta.grad)}
    if residual:
        case.update(residual=last(shortcut), dresidual=last(shortcut.grad))
    return case


def cross_entropy_case(smoothing):
    logits, targets = leaf(5, 7), torch.tensor([0, 6, 3, 3, 1])
    loss = F.cross_entropy(logits, targets, label_smoothing=smoothing)
    loss.backward()
    return {"label_smoothing": smoothing, "logits": tensor(logits), "targets": tensor(targets), "loss": loss.item(),
            "dlogits": tensor(logits.grad)}


def unary_case(function):
    x = leaf(3, 6)
    y = function(x * 1.0)
    dy = leaf(*y.shape)
    y.backward(dy)
    return {"x": tensor(x), "y": tensor(y), "dy": tensor(dy), "dx": tensor(x.grad)}


def mse_case():
    x, target = leaf(3, 4), leaf(3, 4)
    loss = F.mse_loss(x, target)
    loss.backward()
    return {"x": tensor(x), "target": tensor(target), "loss": loss.item(), "dx": tensor(x.grad)}


def optimizer_case(optimizer, **options):
    weight = leaf(4)
    case = {"options": options, "weight": tensor(weight), "steps": []}
    step = optimizer([weight], **options)
    for _ in range(4):
        weight.grad = leaf(4).detach()
        step.step()
        case["steps"].append({"grad": tensor(weight.grad), "weight": tensor(weight)})
    return case


def cases():
    golden = {
        "conv": {
            "1d": conv_case(1, 2, 3, 2, [7], [3], stride=[2], padding=[1]),
            "2d": conv_case(2, 2, 2, 3, [4, 5], [3, 2], padding=[1, 0]),
            "2d_dilated": conv_case(2, 1, 2, 2, [6, 7], [2, 3], stride=[1, 2], padding=[0, 2], dilation=[3, 2]),
            "2d_grouped": conv_case(2, 1, 4, 6, [4, 4], [3, 3], stride=[2, 2], padding=[1, 1], groups=2),
            "2d_depthwise": conv_case(2, 1, 3, 3, [4, 4], [3, 3], padding=[1, 1], groups=3),
            "3d": conv_case(3, 1, 2, 2, [3, 4, 3], [2, 3, 2], stride=[1, 2, 1], padding=[1, 1, 0]),
        },
        "pool": {
            "max_1d": pool_case("max", 1, [7], [3], [2], [1]),
            "max_2d": pool_case("max", 2, [5, 6], [3, 2], [2, 2], [1, 1]),
            "max_3d": pool_case("max", 3, [4, 3, 4], [2, 2, 2], [2, 1, 2], [0, 1, 0]),
            "average_1d": pool_case("average", 1, [7], [3], [2], [1]),
            "average_2d": pool_case("average", 2, [5, 6], [3, 3], [2, 1], [1, 1]),
            "average_2d_without_padding": pool_case("average", 2, [5, 6], [3, 3], [2, 2], [1, 1], False),
            "average_3d": pool_case("average", 3, [4, 3, 4], [2, 2, 2], [2, 1, 2], [0, 1, 0]),
        },
        "batch_norm": {
            "plain": batch_norm_case(False, False),
            "relu": batch_norm_case(True, False),
            "residual": batch_norm_case(False, True),
            "relu_residual": batch_norm_case(True, True),
        },
        "cross_entropy": {"plain": cross_entropy_case(0.0), "smoothed": cross_entropy_case(0.1)},
        "activation": {"relu": unary_case(F.relu), "gelu": unary_case(F.gelu)},
        "softmax": {
            "softmax": unary_case(lambda x: F.softmax(x, -1)),
            "log_softmax": unary_case(lambda x: F.log_softmax(x, -1)),
        },
        "mse": {"mean": mse_case()},
        "sgd": {
            "plain": optimizer_case(torch.optim.SGD, lr=0.1),
            "momentum": optimizer_case(torch.optim.SGD, lr=0.1, momentum=0.9, dampening=0.25, weight_decay=0.125),
            "nesterov": optimizer_case(torch.optim.SGD, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.125),
        },
        "adam": {
            "adam": optimizer_case(torch.optim.Adam, lr=0.01),
            "adam_weight_decay": optimizer_case(torch.optim.Adam, lr=0.01, weight_decay=0.25),
            "adamw": optimizer_case(torch.optim.AdamW, lr=0.01, weight_decay=0.25),
        },
    }
    # Behind the others, whose random numbers stay as they are.
    golden["activation"]["gelu_tanh"] = unary_case(lambda x: F.gelu(x, approximate="tanh"))

    # Behind all the others, whose random numbers stay as they are.
    golden["conv_transpose"] = {
        "1d": conv_transpose_case(1, 2, 3, 2, [4], [3], stride=[3], padding=[1], output_padding=[2]),
        "2d": conv_transpose_case(2, 2, 2, 3, [3, 4], [3, 2], padding=[1, 0]),
        "2d_upsampling": conv_transpose_case(2, 1, 3, 2, [3, 4], [2, 2], stride=[2, 2]),
        "2d_dilated": conv_transpose_case(2, 1, 2, 2, [4, 3], [2, 3], stride=[1, 2], padding=[0, 2], dilation=[3, 2],
                                          output_padding=[0, 1]),
        "2d_grouped": conv_transpose_case(2, 1, 4, 6, [3, 3], [3, 3], stride=[2, 2], padding=[1, 1], groups=2,
                                          output_padding=[1, 0]),
        "2d_depthwise": conv_transpose_case(2, 1, 3, 3, [4, 4], [3, 3], padding=[1, 1], groups=3),
        "3d": conv_transpose_case(3, 1, 2, 2, [2, 3, 2], [2, 3, 2], stride=[1, 2, 2], padding=[1, 1, 0],
                                  output_padding=[0, 1, 1]),
    }
    return golden
