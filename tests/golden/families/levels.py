# SPDX-License-Identifier: Apache-2.0
"""The losses of 30 steps of a small convnet with batch norm under O0, O1 and O2, and gradients of accumulated micro-batches."""

import copy

import torch
from torch.nn import functional as F

from families.tensors import number, tensor

STEPS = 30
SAMPLES = 24
LR, MOMENTUM = 0.05, 0.9
SCALE = 1024.0
TOLERANCE = 2e-3  # the 16-bit and float32 runs depend on the processor


class Convnet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv0 = torch.nn.Conv2d(1, 4, 3, padding=1, bias=False)
        self.norm0 = torch.nn.BatchNorm2d(4)
        self.conv1 = torch.nn.Conv2d(4, 8, 3, stride=2, padding=1, bias=False)
        self.norm1 = torch.nn.BatchNorm2d(8)
        self.output = torch.nn.Linear(8 * 4 * 4, 5)

    def forward(self, x):
        x = F.relu(self.norm0(self.conv0(x)))
        x = F.relu(self.norm1(self.conv1(x)))
        return self.output(x.movedim(1, -1).flatten(1))  # channels last, as Lockstep's images


def data():
    images = torch.randn(2, SAMPLES, 1, 8, 8).round(decimals=2)
    # Classes that depend on the images, so that the loss falls.
    features = images.reshape(2, SAMPLES, 64)[:, :, :5]
    return images.float(), features.argmax(-1)


def plain(model, images, classes):
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images[step % 2]), classes[step % 2])
        loss.backward()
        optimizer.step()
        yield loss.item()


def autocast(model, images, classes, dtype):
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM)
    scaler = torch.amp.GradScaler("cpu", init_scale=SCALE, growth_interval=10**6)
    for step in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=dtype):
            logits = model(images[step % 2])
        loss = F.cross_entropy(logits.float(), classes[step % 2])  # float32, as CUDA's policy has it
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        yield loss.item()


def half_weights(model, images, classes, dtype):
    """Apex's O2: 16-bit weights, batch norm in float32, float32 master weights."""
    masters = [parameter.detach().clone().requires_grad_() for parameter in model.parameters()]
    for module in (model.conv0, model.conv1, model.output):
        module.to(dtype)
    optimizer = torch.optim.SGD(masters, lr=LR, momentum=MOMENTUM)
    for step in range(STEPS):
        model.zero_grad()
        loss = F.cross_entropy(model(images[step % 2].to(dtype)).float(), classes[step % 2])
        (loss * SCALE).backward()
        for master, parameter in zip(masters, model.parameters()):
            master.grad = parameter.grad.float() / SCALE
        optimizer.step()
        with torch.no_grad():
            for master, parameter in zip(masters, model.parameters()):
                parameter.copy_(master)
        yield loss.item()


def weights_of(model):
    def stored(parameter):
        return tensor(parameter.movedim(1, -1).contiguous() if parameter.dim() == 4 else parameter)
    return {name: stored(parameter) for name, parameter in model.named_parameters()}


def accumulation():
    """A linear layer's gradient summed over micro-batches: exactly, and the error of autocast's float32 .grad."""
    rows, inputs, outputs = 128, 16, 8
    x, target = torch.randn(rows, inputs).round(decimals=2), torch.randn(rows, outputs).round(decimals=2)
    weight = torch.randn(outputs, inputs).round(decimals=2)

    def gradient(micro_batches, dtype, half):
        leaf = weight.to(dtype).detach().clone().requires_grad_()
        for part, wanted in zip(x.to(dtype).chunk(micro_batches), target.to(dtype).chunk(micro_batches)):
            with torch.autocast("cpu", dtype=torch.float16, enabled=half):
                y = F.linear(part, leaf)
            (F.mse_loss(y.to(dtype), wanted) * (SCALE / micro_batches)).backward()
        return leaf.grad.double() / SCALE

    exact = gradient(1, torch.float64, False)
    def error(micro_batches):
        return number((gradient(micro_batches, torch.float32, True) - exact).norm().item())
    return {"x": tensor(x), "target": tensor(target), "weight": tensor(weight), "gradient": tensor(exact),
            "errors": {str(count): error(count) for count in (1, 4, 64)}}


def cases():
    images, classes = data()
    model = Convnet().float()
    start = {"images": tensor(images.movedim(2, -1).double()), "classes": tensor(classes), "lr": LR, "momentum": MOMENTUM,
             "scale": SCALE, "weights": weights_of(model)}
    return {
        "start": {"convnet": start},
        "losses": {
            "O0": list(plain(copy.deepcopy(model).double(), images.double(), classes)),
            "O1": list(autocast(copy.deepcopy(model), images, classes, torch.float16)),
            "O2": list(half_weights(copy.deepcopy(model), images, classes, torch.float16)),
        },
        "accumulation": accumulation(),
    }
