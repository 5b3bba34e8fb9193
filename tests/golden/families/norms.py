# SPDX-License-Identifier: Apache-2.0
"""Layer, root mean square, group and instance norm, embedding, upsampling."""

import torch
from torch.nn import functional as F

from families.tensors import last, leaf, tensor


def norm_case(operation, x, weight, bias, write, **options):
    """`write` brings x and its like into Lockstep's order."""
    y = operation(x, weight, bias)
    dy = leaf(*y.shape)
    y.backward(dy)
    case = {**options, "x": write(x), "y": write(y), "dy": write(dy), "dx": write(x.grad)}
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None:
            case.update({name: tensor(parameter), f"d{name}": tensor(parameter.grad)})
    return case


def layer_norm_case(shape, own, affine=True, epsilon=1e-5):
    weight, bias = (leaf(*own), leaf(*own)) if affine else (None, None)
    return norm_case(lambda x, w, b: F.layer_norm(x, own, w, b, epsilon), leaf(*shape), weight, bias, tensor,
                     normalized_shape=list(own), epsilon=epsilon)


def rms_norm_case(shape, own, affine=True, epsilon=None):
    return norm_case(lambda x, w, b: F.rms_norm(x, own, w, epsilon), leaf(*shape), leaf(*own) if affine else None, None,
                     tensor, normalized_shape=list(own), epsilon=epsilon)


def group_norm_case(shape, groups, affine=True):
    weight, bias = (leaf(shape[1]), leaf(shape[1])) if affine else (None, None)
    return norm_case(lambda x, w, b: F.group_norm(x, groups, w, b), leaf(*shape), weight, bias, last, groups=groups)


def instance_norm_case(shape, affine=True):
    weight, bias = (leaf(shape[1]), leaf(shape[1])) if affine else (None, None)
    return norm_case(lambda x, w, b: F.instance_norm(x, weight=w, bias=b), leaf(*shape), weight, bias, last)


def embedding_case(indices, padding=None):
    weight, at = leaf(6, 3), torch.tensor(indices)
    y = F.embedding(at, weight, padding_idx=padding)
    dy = leaf(*y.shape)
    y.backward(dy)
    return {"weight": tensor(weight), "indices": tensor(at), "padding": padding, "y": tensor(y), "dy": tensor(dy),
            "dweight": tensor(weight.grad)}


def upsample_case(shape, mode, size=None, scale_factor=None, align_corners=None):
    x = leaf(*shape)
    y = F.interpolate(x, size=size, scale_factor=scale_factor, mode=mode, align_corners=align_corners)
    dy = leaf(*y.shape)
    y.backward(dy)
    return {"linear": mode != "nearest", "align_corners": bool(align_corners), "extents": size,
            "scale_factor": scale_factor, "x": last(x), "y": last(y), "dy": last(dy), "dx": last(x.grad)}


def upsample_cases():
    modes = {1: "linear", 2: "bilinear", 3: "trilinear"}
    cases = {}
    for name, shape, size in (("double", (2, 2, 4), [8]), ("1d", (2, 2, 5), [12]), ("fewer", (2, 2, 7), [3]),
                              ("one", (1, 2, 1), [3]), ("to_one", (1, 2, 5), [1]), ("2d", (1, 2, 3, 4), [5, 9]),
                              ("3d", (1, 2, 2, 3, 2), [3, 5, 4])):
        cases[f"{name}_nearest"] = upsample_case(shape, "nearest", size)
        for corners in (False, True):
            cases[f"{name}_linear{'_corners' if corners else ''}"] = upsample_case(
                shape, modes[len(shape) - 2], size, align_corners=corners)
    for name, shape, factors in (("1d", (2, 2, 5), [2.3]), ("2d", (1, 2, 4, 5), [1.7, 0.6])):
        cases[f"{name}_factor_nearest"] = upsample_case(shape, "nearest", scale_factor=factors)
        for corners in (False, True):
            cases[f"{name}_factor_linear{'_corners' if corners else ''}"] = upsample_case(
                shape, modes[len(shape) - 2], scale_factor=factors, align_corners=corners)
    return cases


def cases():
    return {
        "layer_norm": {
            "last": layer_norm_case((3, 4, 5), (5,)),
            "last_two": layer_norm_case((3, 4, 5), (4, 5), epsilon=1e-3),
            "plain": layer_norm_case((4, 9), (9,), affine=False),
        },
        "rms_norm": {
            "last": rms_norm_case((3, 4, 5), (5,)),
            "last_two": rms_norm_case((3, 4, 5), (4, 5), epsilon=1e-3),
            "plain": rms_norm_case((4, 9), (9,), affine=False),
        },
        "group_norm": {
            "1d": group_norm_case((2, 6, 5), 3),
            "2d": group_norm_case((2, 6, 3, 4), 2),
            "3d": group_norm_case((1, 4, 2, 3, 2), 1),
            "no_space": group_norm_case((3, 8), 2),
            "plain": group_norm_case((2, 4, 3, 2), 4, affine=False),
        },
        "instance_norm": {
            "1d": instance_norm_case((2, 3, 5)),
            "2d": instance_norm_case((2, 3, 3, 4)),
            "plain": instance_norm_case((2, 2, 2, 2, 2), affine=False),
        },
        "embedding": {
            "plain": embedding_case([[5, 0, 5], [2, 5, 1]]),
            "padding": embedding_case([[5, 0, 5], [2, 5, 1]], padding=5),
            "padding_from_the_end": embedding_case([4, 4, 3], padding=-2),
        },
        "upsample": upsample_cases(),
    }
