# SPDX-License-Identifier: Apache-2.0
"""The steps of optimizers_bench for beside_pytorch.py, beside PyTorch's foreach and fused ones. PyTorch has no LAMB,
NovoGrad, LARS and LARC."""
import torch

FIGURES = {"beside foreach": 0, "beside fused": 0}
TARGET = 1.5
SIZES = {"small": (128, 4), "large": (1024, 12)}
OPTIMIZERS = {
    "sgd": lambda parameters, **how: torch.optim.SGD(parameters, lr=1e-6, momentum=0.9, weight_decay=0.01, **how),
    "adam": lambda parameters, **how: torch.optim.Adam(parameters, lr=1e-6, weight_decay=0.01, **how),
    "amsgrad": lambda parameters, **how: torch.optim.Adam(parameters, lr=1e-6, weight_decay=0.01, amsgrad=True, **how),
    "adagrad": lambda parameters, **how: torch.optim.Adagrad(parameters, lr=1e-6, weight_decay=0.01, **how),
}
NAMES = [f"{name}/{size}" for size in SIZES for name in OPTIMIZERS]


def runs(name, dtype):
    optimizer, size = name.split("/")
    width, layers = SIZES[size]
    for how in ("foreach", "fused"):
        parameters = [torch.full(shape, 0.01, dtype=dtype, requires_grad=True)
                      for _ in range(layers) for shape in ((width, width), (width,))]
        for parameter in parameters:
            parameter.grad = torch.full_like(parameter, 0.01)
        yield OPTIMIZERS[optimizer](parameters, **{how: True}).step
