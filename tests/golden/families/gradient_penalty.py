# SPDX-License-Identifier: Apache-2.0
"""Training with a penalty on the gradient by the input, as in WGAN-GP: 20 steps of SGD on one batch, the loss being
mse(D(x), target) + mean over samples of (|dD(x)/dx| - 1)^2. In float64, and in float32 under autocast in float16."""

import torch
from torch.nn import functional as F

from families.tensors import last, leaf, tensor

def mlp(x, w0, b0, w1, b1, w2, b2):
    return F.linear(torch.tanh(F.linear(F.gelu(F.linear(x, w0, b0)), w1, b1)), w2, b2)


def convnet(x, w0, gamma0, beta0, w1, gamma1, beta1, w2, b2):
    h = F.relu(F.batch_norm(F.conv2d(x, w0, padding=1), None, None, gamma0, beta0, training=True))
    h = F.relu(F.batch_norm(F.conv2d(h, w1, stride=2, padding=1), None, None, gamma1, beta1, training=True))
    return F.linear(h.mean((2, 3)), w2, b2)


def losses(model, x, target, weights, learning_rate, half):
    dtype = torch.float32 if half else torch.float64
    x, target = x.detach().to(dtype).requires_grad_(), target.to(dtype)
    weights = [weight.detach().to(dtype).requires_grad_() for weight in weights]
    found = []
    for _ in range(20):
        with torch.autocast("cpu", dtype=torch.float16, enabled=half):
            y = model(x, *weights)
            dx, = torch.autograd.grad(y.sum(), x, create_graph=True)
            penalty = (dx.flatten(1).square().sum(1).sqrt() - 1).square().mean()
            loss = F.mse_loss(y.float() if half else y, target) + penalty
        gradients = torch.autograd.grad(loss, weights)
        weights = [(weight.detach() - learning_rate * gradient).requires_grad_()
                   for weight, gradient in zip(weights, gradients)]
        found.append(float(f"{loss.item():.12g}"))
    return found


def run(model, x, weights, learning_rate):
    target = leaf(x.shape[0], 1).detach()
    write = lambda values: last(values) if values.dim() > 2 else tensor(values)
    return {"x": write(x), "target": tensor(target), "weights": [write(weight) for weight in weights],
            "learning_rate": learning_rate, "losses": losses(model, x, target, weights, learning_rate, half=False),
            "losses_float16": losses(model, x, target, weights, learning_rate, half=True)}


def scaled(factor, *shape):
    return (leaf(*shape).detach() * factor).round(decimals=4)


def cases():
    return {"models": {
        "mlp": run(mlp, leaf(8, 6), [scaled(0.5, 12, 6), scaled(0.1, 12), scaled(0.3, 10, 12), scaled(0.1, 10),
                                     scaled(0.4, 1, 10), scaled(0.1, 1)], learning_rate=0.1),
        "convnet": run(convnet, leaf(8, 2, 6, 6), [scaled(0.3, 4, 2, 3, 3), 1 + scaled(0.1, 4), scaled(0.1, 4),
                                                   scaled(0.2, 6, 4, 3, 3), 1 + scaled(0.1, 6), scaled(0.1, 6),
                                                   scaled(0.5, 1, 6), scaled(0.1, 1)],
                       learning_rate=0.02),
    }}
