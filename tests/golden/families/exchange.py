# SPDX-License-Identifier: Apache-2.0
"""Weights of torchvision's models by its names, what they answer, and files that torch.save wrote."""

import io
import math

import torch
import torchvision

CLASSES = 10


def weights(model):
    """A state that both sides can make: each tensor's elements follow from their index and the tensor's own number."""
    state = {}
    for number, (name, tensor) in enumerate(model.state_dict().items()):
        if name.endswith("num_batches_tracked"):
            state[name] = torch.tensor(3)
            continue
        words = (torch.arange(tensor.numel()) * 40503 + number * 7919 + 12345) % 65536
        values = words.to(torch.float64) / 65536 - 0.5
        if name.endswith("running_var"):
            values = 1 + values
        elif tensor.dim() > 1:
            values = values * math.sqrt(24 / tensor[0].numel())
        elif name.endswith("weight"):
            values = 0.75 + 0.25 * values
        state[name] = values.reshape(tensor.shape)
    return state


def resnet(depth):
    model = getattr(torchvision.models, f"resnet{depth}")(num_classes=CLASSES).double()
    model.load_state_dict(weights(model))
    model.eval()
    images = torch.linspace(-1, 1, 2 * 32 * 32 * 3).reshape(2, 32, 32, 3).cos()
    logits = model(images.permute(0, 3, 1, 2))
    return {"depth": depth, "shapes": [[name, list(tensor.shape)] for name, tensor in model.state_dict().items()],
            "logits": logits.tolist()}


def saved(content):
    file = io.BytesIO()
    torch.save(content, file)
    return file.getvalue().hex()


def cases():
    whole = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    state = {"a": whole, "b": torch.tensor([1.5, -2.0], dtype=torch.float16),
             "c": torch.tensor(7), "d": whole.permute(2, 0, 1)[1:3], "e": torch.tensor([True, False])}
    files = {
        "state_dict": saved(torch.nn.Linear(2, 1).float().state_dict()),
        "strided": saved(state),
        "within": saved({"epoch": 3, "lr": 0.5, "name": "run", "state_dict": {"module." + k: v for k, v in state.items()}}),
        "parameter": saved({"w": torch.nn.Parameter(torch.ones(2))}),
        "module": saved(torch.nn.ReLU()),
        "complex": saved({"z": torch.ones(1, dtype=torch.complex64)}),
        "list": saved([torch.ones(1)]),
    }
    return {"resnet": {f"resnet{depth}": resnet(depth) for depth in (18, 50)}, "torch_save": files}
