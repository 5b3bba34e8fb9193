# SPDX-License-Identifier: Apache-2.0
"""Movement, reductions over dimensions, indexing, products of matrices, norms, scans."""

import functools

import torch
from torch.nn import functional as F

from families.tensors import leaf, tensor


def case(function, *inputs, twice=True):
    """y, its gradients, and, of what PyTorch can derive twice, the gradients of the sum of their squares."""
    y = function(*inputs)
    dy = torch.randn(y.shape).round(decimals=4)
    gradients = torch.autograd.grad(y, inputs, dy, create_graph=twice)
    stored = {"inputs": [tensor(x) for x in inputs], "y": tensor(y), "dy": tensor(dy),
              "gradients": [tensor(g) for g in gradients]}
    squares = sum((g * g).sum() for g in gradients)
    if twice and squares.requires_grad:
        second = torch.autograd.grad(squares, inputs, allow_unused=True)
        stored["second"] = [tensor(torch.zeros_like(x) + (0 if g is None else g)) for x, g in zip(inputs, second)]
    return stored


def pooled(function, extents):
    """A pool of channels first for tensors that have them last."""
    return lambda x: function(x.movedim(-1, 1), extents).movedim(1, -1)


def columns(x, spatial, window, **options):
    """unfold of channels first, as rows with channels last."""
    n, channels = x.shape[0], x.shape[-1]
    windows = F.unfold(x.movedim(-1, 1), window, **options)
    return windows.reshape(n, channels, -1, windows.shape[-1]).permute(0, 3, 2, 1).flatten(2)


def sampled(x, grid, **options):
    return F.grid_sample(x.movedim(-1, 1), grid, **options).movedim(1, -1)


def points(*shape):
    """Some inside, some outside, none at a place where a derivative jumps."""
    return (torch.rand(*shape) * 2.9 - 1.45).round(decimals=3).requires_grad_()


def ties():
    return torch.tensor([[1.0, 3, 3, 2], [-1, -1, 0, -1], [5, 4, 5, 5]]).requires_grad_()


def cases():
    index = torch.tensor([2, 0, 2, 1])
    places = torch.tensor([[2, 0, 2, 1], [1, 1, 0, 0]])
    zeros = torch.tensor([[2.0, 0, 3, 4], [0, 2, 0, 3]]).requires_grad_()
    return {
        "movement": {
            "permute": case(lambda x: x.permute(2, 0, 1), leaf(2, 3, 4)),
            "flip": case(lambda x: x.flip(0, 2), leaf(2, 3, 4)),
            "expand": case(lambda x: x.expand(2, 3, 4), leaf(3, 1)),
            "sum_to": case(lambda x: x.sum_to_size(3, 1), leaf(2, 3, 4)),
            "repeat": case(lambda x: x.repeat(2, 1, 3), leaf(2, 3)),
            "cat": case(lambda a, b, c: torch.cat([a, b, c], 1), leaf(2, 1, 3), leaf(2, 0, 3), leaf(2, 4, 3)),
            "stack": case(lambda a, b: torch.stack([a, b], -1), leaf(2, 3), leaf(2, 3)),
            "slice": case(lambda x: x[:, 1:7:2], leaf(3, 8)),
            "select": case(lambda x: x.select(1, -2), leaf(3, 4, 2)),
            "index_select": case(lambda x: x.index_select(1, index), leaf(2, 3, 2)),
            "gather": case(lambda x: x.gather(1, places), leaf(3, 3)),
        },
        "reduction": {
            "sum": case(lambda x: x.sum((0, 2), keepdim=True), leaf(3, 4, 2)),
            "sum_of_nothing": case(lambda x: x.sum(1), leaf(3, 0, 2)),
            "mean": case(lambda x: x.mean(1), leaf(3, 4, 2)),
            "var": case(lambda x: x.var((0, 2)), leaf(3, 4, 2)),
            "var_of_the_whole": case(lambda x: x.var(1, correction=0), leaf(3, 4)),
            "std": case(lambda x: x.std(-1), leaf(3, 4)),
            "max": case(lambda x: x.max(1).values, ties()),
            "min": case(lambda x: x.min(0).values, ties()),
            "amax": case(lambda x: x.amax(1), ties()),
            "amin": case(lambda x: x.amin((0, 1)), ties()),
            "logsumexp": case(lambda x: x.logsumexp((0, 2)), leaf(3, 4, 2)),
            "prod": case(lambda x: x.prod(1), leaf(3, 4)),
            "prod_of_zeros": case(lambda x: x.prod(1), zeros),
            "cumsum": case(lambda x: x.cumsum(1), leaf(2, 4, 3)),
            "cumprod": case(lambda x: x.cumprod(1), leaf(2, 4, 3)),
            "cumprod_of_zeros": case(lambda x: x.cumprod(1), zeros),
            "softmax": case(lambda x: x.softmax(1), leaf(2, 4, 3)),
            "log_softmax": case(lambda x: x.log_softmax(0), leaf(2, 4)),
        },
        "norm": {
            "two": case(lambda x: torch.linalg.vector_norm(x, 2, (0, 2)), leaf(3, 4, 2)),
            "one": case(lambda x: torch.linalg.vector_norm(x, 1, 1), leaf(3, 4)),
            "three": case(lambda x: torch.linalg.vector_norm(x, 3, 1), leaf(3, 4)),
            "infinity": case(lambda x: torch.linalg.vector_norm(x, float("inf"), 1), leaf(3, 4)),
            "frobenius": case(lambda x: torch.linalg.matrix_norm(x), leaf(2, 3, 4)),
            "matrix_one": case(lambda x: torch.linalg.matrix_norm(x, 1), leaf(2, 3, 4)),
            "matrix_infinity": case(lambda x: torch.linalg.matrix_norm(x, float("inf")), leaf(2, 3, 4)),
            "cosine_similarity": case(lambda a, b: F.cosine_similarity(a, b, 1), leaf(3, 4, 2), leaf(3, 4, 2)),
        },
        "product": {
            "mm": case(torch.mm, leaf(3, 4), leaf(4, 2)),
            "bmm": case(torch.bmm, leaf(2, 3, 4), leaf(2, 4, 2)),
            "mv": case(torch.mv, leaf(3, 4), leaf(4)),
            "dot": case(torch.dot, leaf(4), leaf(4)),
            "vecdot": case(torch.linalg.vecdot, leaf(3, 4), leaf(3, 4)),
            "addmm": case(lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), leaf(2), leaf(3, 4), leaf(4, 2)),
            "addmv": case(lambda c, a, b: torch.addmv(c, a, b, beta=0.5, alpha=2), leaf(3), leaf(3, 4), leaf(4)),
            "addr": case(lambda c, a, b: torch.addr(c, a, b, beta=0.5, alpha=2), leaf(3, 4), leaf(3), leaf(4)),
            "addbmm": case(lambda c, a, b: torch.addbmm(c, a, b, beta=0.5, alpha=2), leaf(3, 2), leaf(2, 3, 4),
                           leaf(2, 4, 2)),
            "baddbmm": case(lambda c, a, b: torch.baddbmm(c, a, b, beta=0.5, alpha=2), leaf(2, 3, 2), leaf(2, 3, 4),
                            leaf(2, 4, 2)),
            "chain_matmul": case(lambda *x: torch.linalg.multi_dot(x), leaf(3, 5), leaf(5, 2), leaf(2, 4)),
            "einsum": case(lambda a, b: torch.einsum("bik,ckj->jbi", a, b), leaf(2, 3, 4), leaf(2, 4, 2)),
            "tensordot": case(lambda a, b: torch.tensordot(a, b, ([2, 0], [0, 2])), leaf(2, 3, 4), leaf(4, 3, 2)),
        },
        "contraction": {
            "ellipsis": case(lambda a, b: torch.einsum("...ij,j...k->i...k", a, b), leaf(2, 3, 4), leaf(4, 2, 2)),
            "ellipsis_without_arrow": case(lambda a, b: torch.einsum("j...,kj", a, b), leaf(4, 2, 3), leaf(2, 4)),
            "ellipsis_summed": case(lambda a, b: torch.einsum("...i,i->i", a, b), leaf(2, 3), leaf(3)),
            "broadcast": case(lambda a, b: torch.einsum("...ij,...jk", a, b), leaf(3, 1, 2, 4), leaf(2, 4, 2)),
            "diagonal": case(lambda a, b: torch.einsum("iji,jk->ki", a, b), leaf(3, 2, 3), leaf(2, 4)),
            "trace": case(lambda a, b: torch.einsum("ii,j", a, b), leaf(3, 3), leaf(2)),
            "vdot": case(torch.vdot, leaf(4), leaf(4)),
            "dist": case(lambda a, b: torch.dist(a, b, 3), leaf(3, 4), leaf(4)),
            "bilinear": case(F.bilinear, leaf(5, 3), leaf(5, 2), leaf(4, 3, 2), leaf(4)),
        },
        "composition": {
            "index": case(lambda x: x[1, ..., 0:3:2, None], leaf(2, 3, 4)),
            "roll": case(lambda x: x.roll(-2, 1), leaf(2, 5)),
            "pad_constant": case(lambda x: F.pad(x, (2, 1), value=0.5), leaf(2, 3)),
            "pad_reflect": case(lambda x: F.pad(x, (2, 1), "reflect"), leaf(2, 3)),
            "pad_replicate": case(lambda x: F.pad(x, (2, 1), "replicate"), leaf(2, 3)),
            "pad_circular": case(lambda x: F.pad(x, (2, 1), "circular"), leaf(2, 3)),
            "tril": case(lambda x: x.tril(1), leaf(2, 3, 4)),
            "triu": case(lambda x: x.triu(-1), leaf(2, 3, 4)),
            "glu": case(F.glu, leaf(3, 4)),
            "cross": case(lambda a, b: torch.linalg.cross(a, b, dim=0), leaf(3, 4), leaf(3, 4)),
            "einsum_of_one": case(lambda x: torch.einsum("iij->j", x), leaf(3, 3, 4)),
            "einsum_of_three": case(lambda a, b, c: torch.einsum("bi,ij...,b->j...", a, b, c), leaf(2, 3),
                                    leaf(3, 4, 2), leaf(2)),
        },
        "distance": {
            "cdist": case(torch.cdist, leaf(2, 3, 4), leaf(5, 4)),
            "cdist_of_order_1": case(lambda a, b: torch.cdist(a, b, 1), leaf(3, 4), leaf(2, 4)),
            "cdist_of_order_3": case(lambda a, b: torch.cdist(a, b, 3), leaf(3, 4), leaf(2, 4)),
            "pdist": case(torch.pdist, leaf(4, 3)),
            "renorm": case(lambda x: x.renorm(2, 0, 1.5), leaf(3, 4)),
            "renorm_of_order_1": case(lambda x: x.renorm(1, 1, 2), leaf(2, 3, 4)),
        },
        "adaptive": {
            "average": case(pooled(F.adaptive_avg_pool2d, (2, 3)), leaf(2, 5, 7, 3)),
            "average_of_a_line": case(pooled(F.adaptive_avg_pool1d, 3), leaf(2, 7, 2)),
            "average_of_a_volume": case(pooled(F.adaptive_avg_pool3d, (2, 2, 1)), leaf(1, 3, 5, 2, 2)),
            "average_evenly": case(pooled(F.adaptive_avg_pool2d, (2, 3)), leaf(2, 4, 3, 2)),
            "average_to_more": case(pooled(F.adaptive_avg_pool1d, 5), leaf(2, 3, 2)),
            "max": case(pooled(F.adaptive_max_pool2d, (2, 3)), leaf(2, 5, 7, 3)),
            "max_of_a_volume": case(pooled(F.adaptive_max_pool3d, (2, 2, 1)), leaf(1, 3, 5, 2, 2)),
            "max_evenly": case(pooled(F.adaptive_max_pool2d, (2, 3)), leaf(2, 4, 3, 2)),
        },
        "order": {
            "sort": case(lambda x: x.sort(dim=1, stable=True).values, ties()),
            "sort_descending": case(lambda x: x.sort(dim=0, descending=True, stable=True).values, ties()),
            "topk": case(lambda x: x.topk(2, 1).values, leaf(3, 4, 2)),
            "topk_of_the_smallest": case(lambda x: x.topk(3, 0, largest=False).values, leaf(5, 2)),
        },
        "put": {
            "rows": case(lambda x, v: x.index_put((torch.tensor([2, 0]),), v), leaf(3, 4), leaf(2, 4)),
            "elements": case(lambda x, v: x.index_put((torch.tensor([[2], [-3]]), torch.tensor([1, -1])), v),
                             leaf(3, 4), leaf(2, 1)),
            "accumulate": case(lambda x, v: x.index_put((torch.tensor([2, 0, 2]),), v, accumulate=True), leaf(3, 4),
                               leaf(4)),
        },
        "window": {
            "unfold": case(lambda x: x.unfold(1, 3, 2), leaf(2, 8, 2)),
            "im2col": case(lambda x: columns(x, 2, (2, 3), stride=(2, 1), padding=1, dilation=(1, 2)), leaf(2, 4, 6, 3)),
        },
        "grid": {
            name: case(functools.partial(sampled, mode=mode, padding_mode=padding, align_corners=aligned),
                       leaf(2, 4, 3, 2), points(2, 5, 2, 2), twice=False)
            for name, mode, padding, aligned in [
                ("linear", "bilinear", "zeros", False),
                ("linear_aligned", "bilinear", "zeros", True),
                ("linear_border", "bilinear", "border", False),
                ("linear_reflection", "bilinear", "reflection", False),
                ("linear_reflection_aligned", "bilinear", "reflection", True),
                ("nearest", "nearest", "zeros", False),
                ("nearest_reflection", "nearest", "reflection", True),
                ("cubic", "bicubic", "zeros", False),
                ("cubic_border", "bicubic", "border", True),
                ("cubic_reflection", "bicubic", "reflection", False)]
        } | {
            "volume": case(functools.partial(sampled, align_corners=False), leaf(2, 2, 3, 4, 2), points(2, 5, 1, 1, 3),
                           twice=False),
        },
    }
