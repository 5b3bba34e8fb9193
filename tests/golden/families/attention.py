# SPDX-License-Identifier: Apache-2.0
"""Scaled dot-product attention with first and second gradients."""

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from families.tensors import leaf, tensor


def case(queries, keys, heads=2, kv_heads=2, channels=2, causal=False, mask=None, scale=None, second=True):
    q, k = leaf(1, heads, queries, channels), leaf(1, kv_heads, keys, channels)
    v, dy = leaf(1, kv_heads, keys, 2), leaf(1, heads, queries, 2)
    stored = {"causal": causal, "q": tensor(q), "k": tensor(k), "v": tensor(v), "dy": tensor(dy)}
    if mask is not None:
        stored["mask"], stored["mask_is_bool"] = tensor(mask), mask.dtype == torch.bool
    if scale is not None:
        stored["scale"] = scale
    with sdpa_kernel(SDPBackend.MATH):  # the one that can be differentiated twice
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, scale=scale,
                                           enable_gqa=heads != kv_heads)
        first = torch.autograd.grad(y, (q, k, v), dy, create_graph=True)
    stored["y"] = tensor(y)
    stored["first"] = [tensor(gradient) for gradient in first]
    if second:
        # Of the sum of all first gradients.
        again = torch.autograd.grad(sum(gradient.sum() for gradient in first), (q, k, v, dy))
        stored["second"] = [tensor(gradient) for gradient in again]
    return stored


def cases():
    bias = torch.randn(5, 7).round(decimals=4)
    bias[2, 3] = -torch.inf
    allowed = torch.rand(1, 1, 5, 7) > 0.4
    allowed[..., 0] = True
    lengths = {f"length_{t}": case(t, t, heads=1, kv_heads=1, second=t < 65) for t in (1, 2, 7, 64, 65, 257)}
    causal = {f"causal_{t}": case(t, t, heads=1, kv_heads=1, causal=True, second=t < 65)
              for t in (1, 2, 7, 64, 65, 257)}
    return {"attention": {
        **lengths, **causal,
        "more_keys": case(5, 7), "causal_more_keys": case(5, 7, causal=True), "causal_fewer_keys": case(7, 5, causal=True),
        "bias": case(5, 7, mask=bias), "bool": case(5, 7, mask=allowed), "scale": case(5, 7, scale=0.3),
        "shared_heads": case(5, 7, heads=4, kv_heads=2), "channels": case(5, 7, channels=9),
    }}
