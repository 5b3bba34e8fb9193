# SPDX-License-Identifier: Apache-2.0
"""How tensors are made and written."""

import torch


def leaf(*shape):
    """Random numbers of four decimals, which float32 files would round but float64 ones hold, as a leaf."""
    return torch.randn(shape).round(decimals=4).requires_grad_()


def tensor(values):
    """A tensor as the tests read it. Not-finite numbers are written as null, "inf" and "-inf"."""
    flat = values.detach().reshape(-1).tolist()
    return {"shape": list(values.shape), "values": [number(value) for value in flat]}


def number(value):
    if isinstance(value, (bool, int)):
        return int(value)
    if value != value:
        return None
    if value in (float("inf"), float("-inf")):
        return str(value)
    return float(f"{value:.15g}")


def last(values):
    """Channels from the second to the last dimension: of images, and of weights alike."""
    return tensor(values.detach().movedim(1, -1).contiguous())
