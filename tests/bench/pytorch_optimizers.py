#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The steps of optimizers_bench beside PyTorch's, one thread each, in turns:
  pytorch_optimizers.py build/release/bin/optimizers_bench

Prints the milliseconds of a step, the GB/s of Lockstep's, and how many times PyTorch's foreach and fused ones are that.
Medians over the rounds. PyTorch has no LAMB, NovoGrad, LARS and LARC: those stand beside the copy alone.
"""

import os
import statistics
import subprocess
import sys
import time

import torch

torch.set_num_threads(1)
ROUNDS = int(os.environ.get("ROUNDS", "5"))
SIZES = {"small": (128, 4), "large": (1024, 12)}
OPTIMIZERS = {
    "sgd": lambda parameters, **how: torch.optim.SGD(parameters, lr=1e-6, momentum=0.9, weight_decay=0.01, **how),
    "adam": lambda parameters, **how: torch.optim.Adam(parameters, lr=1e-6, weight_decay=0.01, **how),
    "amsgrad": lambda parameters, **how: torch.optim.Adam(parameters, lr=1e-6, weight_decay=0.01, amsgrad=True, **how),
    "adagrad": lambda parameters, **how: torch.optim.Adagrad(parameters, lr=1e-6, weight_decay=0.01, **how),
}
NAMES = ["copy", *OPTIMIZERS, "lamb", "novograd", "lars", "larc"]


def seconds(run):
    run(), run()
    start = time.perf_counter()
    run()
    runs = max(1, min(10000, int(0.05 / (time.perf_counter() - start))))
    trains = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(runs):
            run()
        trains.append((time.perf_counter() - start) / runs)
    return statistics.median(trains)


def milliseconds(name, size, how):
    width, layers = SIZES[size]
    parameters = [torch.full(shape, 0.01, requires_grad=True) for _ in range(layers) for shape in ((width, width), (width,))]
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, 0.01)
    return 1e3 * seconds(OPTIMIZERS[name](parameters, **{how: True}).step)


def main():
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    print(f"{'step':16} {'ms':>9} {'GB/s':>6} {'foreach':>8} {'fused':>6}")
    for size in SIZES:
        for name in NAMES:
            ours, theirs = [], {"foreach": [], "fused": []}
            for _ in range(ROUNDS):
                line = subprocess.run([sys.argv[1], f"{name}/{size}"], env=environment, check=True, capture_output=True,
                                      text=True).stdout.split()
                ours.append((float(line[1]), float(line[2])))
                for how, times in theirs.items():
                    if name in OPTIMIZERS:
                        times.append(milliseconds(name, size, how))
            mine = statistics.median(time for time, _ in ours)
            rate = statistics.median(rate for _, rate in ours)
            ratios = [f"{statistics.median(times) / mine:.2f}x" if times else "" for times in theirs.values()]
            print(f"{name + '/' + size:16} {mine:9.4f} {rate:6.1f} {ratios[0]:>8} {ratios[1]:>6}", flush=True)


if __name__ == "__main__":
    main()
