# SPDX-License-Identifier: Apache-2.0
"""The steps of optimizers_bench for beside_pytorch.py, beside PyTorch's foreach and fused ones. PyTorch has no LAMB,
NovoGrad, LARS and LARC. A mixed one is what a step of PyTorch's recipe does behind backward(): GradScaler.unscale_(),
clip_grad_norm_(), GradScaler.step() and the casts of the weights that autocast makes for the next forward pass."""
import torch

FIGURES = {"beside foreach": 0, "beside fused": 0}
SIZES = {"small": (128, 4), "large": (1024, 12)}
OPTIMIZERS = {
    "sgd": lambda parameters, **how: torch.optim.SGD(parameters, lr=1e-6, momentum=0.9, weight_decay=0.01, **how),
    "adam": lambda parameters, **how: torch.optim.Adam(parameters, lr=1e-6, weight_decay=0.01, **how),
    "amsgrad": lambda parameters, **how: torch.optim.Adam(parameters, lr=1e-6, weight_decay=0.01, amsgrad=True, **how),
    "adagrad": lambda parameters, **how: torch.optim.Adagrad(parameters, lr=1e-6, weight_decay=0.01, **how),
}
MIXED = {f"mixed_{name}": OPTIMIZERS[name] for name in ("sgd", "adam")}
NAMES = [f"{name}/{size}" for group in (OPTIMIZERS, MIXED) for size in SIZES for name in group]


def target(name):
    return 1.5


def runs(name, dtype):
    optimizer, size = name.split("/")
    width, layers = SIZES[size]
    for how in ("foreach", "fused"):
        # Under autocast parameters and their gradients are float32.
        parameters = [torch.full(shape, 0.01, requires_grad=True)
                      for _ in range(layers) for shape in ((width, width), (width,))]
        for parameter in parameters:
            parameter.grad = torch.full_like(parameter, 0.01)
        if optimizer in OPTIMIZERS:
            yield OPTIMIZERS[optimizer](parameters, **{how: True}).step
        else:
            yield mixed(parameters, MIXED[optimizer](parameters, **{how: True}), dtype)


def mixed(parameters, optimizer, dtype):
    # A scale of 1, so that unscaling the same gradients again and again leaves them alone.
    scaler = torch.amp.GradScaler("cpu", init_scale=1.0, growth_interval=10**9)
    scaler.scale(torch.zeros(()))
    copies = []

    def step():
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        scaler.step(optimizer)
        scaler.update()
        copies[:] = [parameter.detach().to(dtype) for parameter in parameters]

    return step
