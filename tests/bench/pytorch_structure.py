# SPDX-License-Identifier: Apache-2.0
"""The cases of structure_bench for beside_pytorch.py."""
import pytorch_operations
import torch
from torch.nn import functional as F

FIGURES = pytorch_operations.FIGURES

EVERYWHERE = ("12800x10/1", "2048x64/1", "128x1000/1", "2048x64/0", "1000x128/0", "10x12800/0", "100x10x128/1",
              "16x64x128/1", "8x1000x16/1")
SOFTMAXES = ("12800x10/1", "2048x64/1", "128x1000/1", "16x64x128/1", "100x10x128/1", "1000x128/0")
ALONG = {"sum": EVERYWHERE, "mean": EVERYWHERE, "amax": EVERYWHERE, "var": EVERYWHERE, "argmax": EVERYWHERE,
         "logsumexp": EVERYWHERE, "softmax": SOFTMAXES, "log_softmax": SOFTMAXES,
         "cumsum": ("12800x10/1", "2048x64/1", "128x1000/1", "2048x64/0", "16x64x128/1")}
BROADCASTS = ("add/2048x64/2048x64", "add/2048x64/64", "add/2048x64/2048x1", "add/12800x10/10", "add/12800x10/12800x1",
              "add/128x1000/128x1", "add/16x64x128/16x1x128", "sub/2048x1/64", "div/2048x64/2048x1")
ROWS = torch.randint(1000, (4096,))
PLACES = torch.randint(64, (2048, 64))
MOVEMENT = {
    "transpose/1024x512": lambda x: x.t().contiguous(),
    "heads/8x128x8x64": lambda x: x.permute(0, 2, 1, 3).contiguous(),
    "channels_first/8x32x32x64": lambda x: x.permute(0, 3, 1, 2).contiguous(),
    "channels_last/8x64x32x32": lambda x: x.permute(0, 2, 3, 1).contiguous(),
    "cat_first/1024x128": lambda x, y: torch.cat((x, y), 0),
    "cat_last/1024x128": lambda x, y: torch.cat((x, y), 1),
    "slice_last/1024x256": lambda x: x[:, 32:224].contiguous(),
    "index_select/1000x128": lambda x: x.index_select(0, ROWS),
    "gather/2048x64": lambda x: x.gather(1, PLACES),
    "index_add/4096x128": lambda x: x.new_zeros(1000, 128).index_add_(0, ROWS, x),
}
ORDERS = {"sort": lambda x, dim: x.sort(dim=dim, stable=True).values, "topk": lambda x, dim: x.topk(5, dim).values}
ORDERED = ("2048x64/1", "128x1000/1", "1x100000/1", "1000x128/0")
POINTS = torch.rand(8, 32, 32, 2) * 2 - 1
SAMPLES = {
    "unfold/8x32x32x16": lambda x: F.unfold(x.permute(0, 3, 1, 2), 3, padding=1),
    "grid_sample/8x32x32x16": lambda x: F.grid_sample(x.permute(0, 3, 1, 2), POINTS.to(x.dtype), align_corners=False),
}
LOSSES = {"mse": F.mse_loss, "l1": F.l1_loss, "smooth_l1": F.smooth_l1_loss,
          "bce_with_logits": F.binary_cross_entropy_with_logits,
          "kl_div": lambda x, target: F.kl_div(x, target, reduction="batchmean", log_target=True)}
CROSS_ENTROPIES = {"512x1000": torch.randint(1000, (512,)), "12800x10": torch.randint(10, (12800,))}


def sizes(text):
    return tuple(map(int, text.split("x")))


def cases():
    """(operation, shapes of its inputs) by name."""
    for name, where in ALONG.items():
        for shape, dim in (at.split("/") for at in where):
            yield f"{name}/{shape}/{dim}", (lambda x, f=getattr(torch, name), dim=int(dim): f(x, dim), [sizes(shape)])
    for name, operation in ORDERS.items():
        for shape, dim in (at.split("/") for at in ORDERED):
            yield f"{name}/{shape}/{dim}", (lambda x, f=operation, dim=int(dim): f(x, dim), [sizes(shape)])
    for name, operation in SAMPLES.items():
        yield name, (operation, [sizes(name.split("/")[1])])
    for name in BROADCASTS:
        function, *shapes = name.split("/")
        yield name, (getattr(torch, function), list(map(sizes, shapes)))
    for name, operation in MOVEMENT.items():
        yield name, (operation, [sizes(name.split("/")[1])] * operation.__code__.co_argcount)
    for shape, targets in CROSS_ENTROPIES.items():
        yield f"cross_entropy/{shape}", (lambda x, targets=targets: F.cross_entropy(x, targets), [sizes(shape)])
    for name, loss in LOSSES.items():
        yield f"{name}/2048x64", (loss, [(2048, 64)] * 2)


CASES = dict(cases())
NAMES = list(CASES)


def target(name):
    return 1


def runs(name, dtype):
    operation, shapes = CASES[name]
    return pytorch_operations.runs(operation, pytorch_operations.random_inputs(shapes, dtype), differentiated=1)
