# SPDX-License-Identifier: Apache-2.0
"""A plain U-Net of volumes, or of images: what it answers, its loss and the gradient of every weight."""

import torch
from torch import nn
from torch.nn import functional

from families.tensors import last, leaf, tensor


def of_rank(case, name):
    """nn.Conv3d, or of images nn.Conv2d."""
    return getattr(nn, f"{name}{case.get('rank', 3)}d")


class Level(nn.Module):
    def __init__(self, inputs, outputs, case):
        super().__init__()
        self.case = case
        self.convolutions, self.norms = nn.ModuleList(), nn.ModuleList()
        for i in range(case["convolutions"]):
            source = outputs if i else inputs
            self.convolutions.append(of_rank(case, "Conv")(source, outputs, 3, padding=1, bias=case["norm"] == "GROUP"))
            self.norms.append({"BATCH": lambda: of_rank(case, "BatchNorm")(outputs),
                               "INSTANCE": lambda: of_rank(case, "InstanceNorm")(outputs, affine=True),
                               "GROUP": lambda: nn.GroupNorm(case["groups"], outputs)}[case["norm"]]())

    def forward(self, x):
        activation = {"RELU": functional.relu, "GELU": functional.gelu}[self.case["activation"]]
        for convolution, norm in zip(self.convolutions, self.norms):
            x = activation(norm(convolution(x)))
        return x

    def named(self):
        for i, (convolution, norm) in enumerate(zip(self.convolutions, self.norms)):
            yield f"stage{i}_conv", convolution
            yield f"stage{i}_norm", norm


class UNet(nn.Module):
    def __init__(self, case):
        super().__init__()
        self.case = case
        inputs, channels, levels = case["inputs"], case["channels"], case["levels"]
        self.down, self.widening, self.up = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for _ in range(levels):
            self.down.append(Level(inputs, channels, case))
            inputs, channels = channels, 2 * channels
        self.bottom = Level(inputs, channels, case)
        for _ in range(levels):
            half = channels // 2
            transposed = case["up"] == "TRANSPOSED"
            self.widening.append(of_rank(case, "ConvTranspose")(channels, half, 2, stride=2) if transposed
                                 else of_rank(case, "Conv")(channels, half, 1))
            self.up.append(Level(channels, half, case))
            channels = half
        self.head = of_rank(case, "Conv")(channels, case["outputs"], 1)

    def forward(self, x):
        skipped = []
        for level in self.down:
            skipped.append(level(x))
            x = of_rank(self.case, "MaxPool")(2)(skipped[-1])
        x = self.bottom(x)
        for double, level in zip(self.widening, self.up):
            x = double(x)
            if self.case["up"] != "TRANSPOSED":
                x = functional.interpolate(x, scale_factor=2, mode=self.case["up"].lower(), align_corners=False)
            x = level(torch.cat([skipped.pop(), x], 1))
        return self.head(x)

    def named(self):
        """Modules by Lockstep's names."""
        levels = len(self.down)
        for i, level in enumerate(self.down):
            yield from ((f"down{i}.{name}", module) for name, module in level.named())
        yield from ((f"bottom.{name}", module) for name, module in self.bottom.named())
        for i, (double, level) in enumerate(zip(self.widening, self.up)):
            yield f"double{levels - 1 - i}.conv", double
            yield from ((f"up{levels - 1 - i}.{name}", module) for name, module in level.named())
        yield "head", self.head


def ordered(values):
    """In Lockstep's order: of convolutions, a transposed one's too, channels from the second to the last dimension."""
    return last(values) if values.dim() >= 4 else tensor(values)


def dice(probabilities, target):
    p, t = probabilities.flatten(1), target.flatten(1)
    return (1 - (2 * (p * t).sum(1) + 1) / (p.sum(1) + t.sum(1) + 1)).mean()


def case(**options):
    model = UNet(options)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.randn_like(parameter).mul(0.3).add(1 if "norms" in name and "weight" in name else 0)
                            .round(decimals=4))
    x = leaf(2, options["inputs"], *options["extents"])
    y = model(x)
    if options["classes"]:
        target = torch.randint(options["outputs"], (2, *options["extents"]))
        loss = functional.cross_entropy(y, target)
    else:
        target = torch.randint(2, y.shape).double()
        loss = functional.binary_cross_entropy_with_logits(y, target) + dice(torch.sigmoid(y), target)
    loss.backward()
    parameters, gradients, statistics = {}, {}, {}
    for name, module in model.named():
        for kind, parameter in module.named_parameters():
            parameters[f"{name}.{kind}"] = ordered(parameter)
            gradients[f"{name}.{kind}"] = ordered(parameter.grad)
        if isinstance(module, of_rank(options, "BatchNorm")):
            statistics[f"{name}.running"] = tensor(torch.stack([module.running_mean, module.running_var]))
    return {**options, "x": last(x), "y": last(y), "target": tensor(target) if options["classes"] else last(target),
            "loss": loss.item(), "dx": last(x.grad), "parameters": parameters, "gradients": gradients,
            "statistics": statistics}


def cases():
    common = {"channels": 2, "groups": 2, "outputs": 1, "classes": False, "inputs": 1, "activation": "RELU"}
    return {"unet3d": {
        "batch_transposed": case(**common | {"levels": 2, "convolutions": 1, "up": "TRANSPOSED", "norm": "BATCH",
                                             "extents": [4, 4, 8]}),
        "instance_trilinear": case(**common | {"levels": 1, "convolutions": 2, "up": "TRILINEAR", "norm": "INSTANCE",
                                               "activation": "GELU", "extents": [4, 2, 6], "inputs": 2}),
        "group_classes": case(**common | {"levels": 1, "convolutions": 1, "up": "TRANSPOSED", "norm": "GROUP",
                                          "extents": [2, 4, 4], "outputs": 3, "classes": True}),
        "group_masks": case(**common | {"levels": 1, "convolutions": 1, "up": "TRILINEAR", "norm": "GROUP",
                                        "extents": [4, 2, 2], "outputs": 2}),
    }}
