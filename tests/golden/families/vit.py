# SPDX-License-Identifier: Apache-2.0
"""torchvision's vision transformer, with all gradients. Parameters have their names and layout.

Needs the package torchvision beside torch."""

import torch
from torch.nn import functional

from families.tensors import number

TOLERANCE = 1e-9


def rounded(values):
    return {"shape": list(values.shape),
            "values": [float(f"{number(value):.12g}") for value in values.detach().reshape(-1).tolist()]}


def case(images, **options):
    from torchvision.models import VisionTransformer

    model = VisionTransformer(image_size=8, num_layers=2, hidden_dim=12, num_classes=5, **options).double().train()
    for name, parameter in model.named_parameters():
        gain = parameter.ndim == 1 and name.endswith("weight")
        parameter.data = (torch.randn(parameter.shape) * 0.2 + (1 if gain else 0)).round(decimals=3)
    x = torch.randn(images, 3, 8, 8).round(decimals=3).requires_grad_()
    labels = torch.randint(5, (images,))
    logits = model(x)
    loss = functional.cross_entropy(logits, labels)
    loss.backward()
    return {
        "patch": options["patch_size"], "heads": options["num_heads"], "hidden": options["mlp_dim"],
        "images": rounded(x.permute(0, 2, 3, 1)), "labels": labels.tolist(), "logits": rounded(logits),
        "loss": loss.item(), "images_gradient": rounded(x.grad.permute(0, 2, 3, 1)),
        "parameters": {name: rounded(parameter) for name, parameter in model.named_parameters()},
        "gradients": {name: rounded(parameter.grad) for name, parameter in model.named_parameters()},
    }


def cases():
    return {"vit": {"patch4": case(3, patch_size=4, num_heads=3, mlp_dim=20),
                    "patch2": case(2, patch_size=2, num_heads=2, mlp_dim=48)}}
