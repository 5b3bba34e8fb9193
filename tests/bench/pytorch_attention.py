# SPDX-License-Identifier: Apache-2.0
"""Attention beside PyTorch's, on one thread of the CPU:

  /path/to/python-with-torch tests/bench/pytorch_attention.py build/release/bin/attention_bench [--shape B H T C]

Runs both in turns and prints the medians of the processor's time in milliseconds, forward and forward with backward.
"""
import argparse
import os
import statistics
import subprocess
import time

import torch
from torch.nn import functional as F

ARGUMENTS = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ARGUMENTS.add_argument("bench", help="the program attention_bench")
ARGUMENTS.add_argument("--shape", type=int, nargs=4, default=[2, 4, 512, 64], metavar=("B", "H", "T", "C"))
ARGUMENTS.add_argument("--rounds", type=int, default=3)


def milliseconds(run):
    run()
    times = []
    for _ in range(7):
        start = time.process_time()
        run()
        times.append(1e3 * (time.process_time() - start))
    return statistics.median(times)


def theirs(shape, dtype, causal):
    q, k, v = [torch.randn(*shape, dtype=dtype).requires_grad_() for _ in range(3)]
    dout = torch.randn(*shape, dtype=dtype)

    def forward():
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    with torch.no_grad():
        alone = milliseconds(forward)
    return alone, milliseconds(lambda: torch.autograd.grad(forward(), (q, k, v), dout))


def main():
    arguments = ARGUMENTS.parse_args()
    torch.set_num_threads(1)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    found = {}
    for _ in range(arguments.rounds):
        command = [arguments.bench, *map(str, arguments.shape)]
        lines = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.splitlines()
        for dtype, kind, *ours in map(str.split, lines):
            peer = theirs(arguments.shape, getattr(torch, dtype), kind == "causal")
            found.setdefault((dtype, kind), []).append([*map(float, ours), *peer])
    print(f"{'':20}{'forward':>9}{'PyTorch':>9}{'ratio':>7}{'with backward':>15}{'PyTorch':>9}{'ratio':>7}")
    for (dtype, kind), rows in found.items():
        forward, both, their_forward, their_both = map(statistics.median, zip(*rows))
        print(f"{dtype + ' ' + kind:20}{forward:9.2f}{their_forward:9.2f}{their_forward / forward:7.2f}"
              f"{both:15.2f}{their_both:9.2f}{their_both / both:7.2f}")


if __name__ == "__main__":
    main()
