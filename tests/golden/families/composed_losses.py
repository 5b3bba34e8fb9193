# SPDX-License-Identifier: Apache-2.0
"""Losses with first and second gradients, by the name of the operation; `options` are its arguments."""

import torch
from torch.nn import functional as F

from families.tensors import leaf, tensor


def case(loss, floating, constants=(), reduction="mean", twice=True, **options):
    """`floating`: inputs that get gradients. Second gradients are those of the sum of all first ones, unless PyTorch
    has none (`twice`)."""
    y = loss(*floating, *constants, reduction=reduction, **options)
    dy = leaf(*y.shape)
    first = torch.autograd.grad(y, floating, dy, create_graph=twice)
    total = sum(gradient.sum() for gradient in first)
    second = torch.autograd.grad(total, (*floating, dy), allow_unused=True) if twice and total.requires_grad else []
    return {
        "reduction": reduction,
        "options": {name: tensor(value) if torch.is_tensor(value) else value for name, value in options.items()},
        "inputs": [tensor(value) for value in floating], "constants": [tensor(value) for value in constants],
        "y": tensor(y), "dy": tensor(dy), "first": [tensor(gradient) for gradient in first],
        # Added to zeros, since a gradient that is zero everywhere may have no memory.
        "second": [tensor(torch.zeros_like(value) + (0 if gradient is None else gradient))
                   for value, gradient in zip((*floating, dy), second)],
    }


def probabilities(*shape):
    return torch.rand(*shape).round(decimals=4).clamp(0.01, 0.99).requires_grad_()


def signs(*shape):
    return torch.where(torch.rand(*shape) > 0.5, 1.0, -1.0)


def counts(*shape):
    return torch.randint(0, 5, shape).to(torch.float64)


def cases():
    pair = lambda: (leaf(3, 5), leaf(3, 5))
    reductions = ("mean", "sum", "none")
    result = {name: {} for name in ("l1", "smooth_l1", "huber", "kl_div", "binary_cross_entropy_with_logits",
                                    "binary_cross_entropy", "nll", "hinge_embedding", "soft_margin", "margin_ranking",
                                    "cosine_embedding", "triplet_margin", "poisson_nll")}
    for reduction in reductions:
        of = {"reduction": reduction}
        result["l1"][reduction] = case(F.l1_loss, pair(), **of)
        result["smooth_l1"][reduction] = case(F.smooth_l1_loss, pair(), **of)
        result["smooth_l1"][reduction + "_beta"] = case(F.smooth_l1_loss, pair(), beta=0.4, **of)
        result["huber"][reduction] = case(F.huber_loss, pair(), delta=0.7, **of)
        result["kl_div"][reduction] = case(F.kl_div, (leaf(3, 5), probabilities(3, 5)), **of)
        result["kl_div"][reduction + "_log"] = case(F.kl_div, pair(), log_target=True, **of)
        logits = "binary_cross_entropy_with_logits"
        result[logits][reduction] = case(F.binary_cross_entropy_with_logits, (leaf(3, 5), probabilities(3, 5)), **of)
        result[logits][reduction + "_weights"] = case(
            F.binary_cross_entropy_with_logits, (leaf(3, 5), probabilities(3, 5)), weight=torch.rand(3, 5),
            pos_weight=torch.rand(5) + 0.5, **of)
        result["binary_cross_entropy"][reduction] = case(
            F.binary_cross_entropy, (probabilities(3, 5), probabilities(3, 5)), weight=torch.rand(3, 5), **of)
        targets = torch.tensor([4, 0, 2, 2])
        result["nll"][reduction] = case(F.nll_loss, (leaf(4, 5),), (targets,), **of)
        result["nll"][reduction + "_weights"] = case(F.nll_loss, (leaf(4, 5),), (targets,), weight=torch.rand(5),
                                                     ignore_index=2, **of)
        result["hinge_embedding"][reduction] = case(F.hinge_embedding_loss, (leaf(3, 5),), (signs(3, 5),), margin=0.8,
                                                    **of)
        result["soft_margin"][reduction] = case(F.soft_margin_loss, (leaf(3, 5),), (signs(3, 5),), **of)
        result["margin_ranking"][reduction] = case(F.margin_ranking_loss, (leaf(7), leaf(7)), (signs(7),), margin=0.3,
                                                   **of)
        result["cosine_embedding"][reduction] = case(F.cosine_embedding_loss, pair(), (signs(3),), margin=0.1, **of)
        result["triplet_margin"][reduction] = case(F.triplet_margin_loss, (leaf(3, 5), leaf(3, 5), leaf(3, 5)), **of)
        result["triplet_margin"][reduction + "_swap"] = case(
            F.triplet_margin_loss, (leaf(3, 5), leaf(3, 5), leaf(3, 5)), margin=2.0, p=3.0, swap=True, **of)
        result["poisson_nll"][reduction] = case(F.poisson_nll_loss, (leaf(3, 5),), (counts(3, 5),), full=True, **of)
        result["poisson_nll"][reduction + "_rate"] = case(F.poisson_nll_loss, (probabilities(3, 5),), (counts(3, 5),),
                                                          log_input=False, **of)
    result |= {name: {} for name in ("cross_entropy", "multi_margin", "multilabel_margin")}
    weights, targets = torch.rand(5) + 0.5, torch.tensor([4, 0, 2, -100, 2])
    for reduction in ("mean", "sum"):
        of = {"reduction": reduction}
        for smoothing in (0.0, 0.2):
            name = reduction + ("_smoothed" if smoothing > 0 else "")
            smoothed = of | {"label_smoothing": smoothing}
            result["cross_entropy"][name + "_ignored"] = case(
                F.cross_entropy, (leaf(5, 5),), (targets,), ignore_index=-100, **smoothed)
            result["cross_entropy"][name + "_weights"] = case(
                F.cross_entropy, (leaf(3, 5),), (targets[:3],), weight=weights, **smoothed)
            result["cross_entropy"][name + "_weights_ignored"] = case(
                F.cross_entropy, (leaf(5, 5),), (targets.abs() % 5,), weight=weights, ignore_index=2, **smoothed)
    for reduction in reductions:
        of = {"reduction": reduction, "twice": False}
        result["multi_margin"][reduction] = case(F.multi_margin_loss, (leaf(4, 5),), (torch.tensor([4, 0, 2, 2]),), **of)
        result["multi_margin"][reduction + "_square"] = case(
            F.multi_margin_loss, (leaf(4, 5),), (torch.tensor([4, 0, 2, 2]),), p=2, margin=0.6, weight=weights, **of)
        result["multilabel_margin"][reduction] = case(
            F.multilabel_margin_loss, (leaf(4, 4),),
            (torch.tensor([[3, 0, -1, 1], [-1, 2, 1, 0], [2, -1, 0, -1], [0, 1, 2, 3]]),), **of)
    # Of the logits [N, T, C], as the model gives them; one sample's elements are too few for its labels.
    labels = torch.tensor([[1, 2, 2], [3, 0, 0], [1, 1, 1], [0, 0, 0]])
    lengths, counted = torch.tensor([6, 4, 3, 2]), torch.tensor([3, 1, 3, 0])
    result["ctc"] = {}
    for reduction in reductions:
        result["ctc"][reduction] = case(
            lambda x, *rest, **of: F.ctc_loss(x.log_softmax(-1).transpose(0, 1), *rest, **of), (leaf(4, 6, 5),),
            (labels, lengths, counted), reduction=reduction, twice=False, zero_infinity=True)
    result["cross_entropy_of_probabilities"] = {}
    for reduction in ("mean", "sum"):
        of = {"reduction": reduction, "label_smoothing": 0.1}
        inputs = lambda: (leaf(3, 5), probabilities(3, 5))
        result["cross_entropy_of_probabilities"][reduction] = case(F.cross_entropy, inputs(), **of)
        result["cross_entropy_of_probabilities"][reduction + "_weights"] = case(F.cross_entropy, inputs(), weight=weights,
                                                                                **of)
    # Saturated probabilities: logarithms are cut off at -100.
    p = torch.tensor([0.0, 1.0, 0.0, 1.0], requires_grad=True)
    t = torch.tensor([0.0, 1.0, 1.0, 0.0])
    y = F.binary_cross_entropy(p, t, reduction="none")
    dy = torch.ones(4)
    result["binary_cross_entropy"]["saturated"] = {
        "reduction": "none", "options": {}, "inputs": [tensor(p)], "constants": [tensor(t)], "y": tensor(y),
        "dy": tensor(dy), "first": [tensor(torch.autograd.grad(y, p, dy)[0])], "second": []}
    return result
