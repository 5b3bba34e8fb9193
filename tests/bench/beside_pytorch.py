#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operations beside PyTorch's, one thread each, in turns: tables of what each takes and how many times PyTorch's that is.

  PYTHON-WITH-TORCH tests/bench/beside_pytorch.py build/release/bin [SUITE...] [--only PART] [--rounds N]

Suites are structure, loops, norms, attention and optimizers; all of them without an argument. Each has a program,
SUITE_bench, and a module, pytorch_SUITE.py, with

  NAMES      cases that both have
  FIGURES    a column's name, and which of the numbers after name and dtype in the program's line stands beside it
  target     target(name): how many times as fast as PyTorch the program is meant to be at a case
  runs       runs(name, dtype): a function for each of FIGURES that computes the case with PyTorch

Times are of the processor, which other programs change less than they do the clock's: the median of trains in a
program, then that of the rounds. A cell is Lockstep's milliseconds and the median of the rounds' ratios; above 1
Lockstep is faster, and what misses the target is bold.
"""
import argparse
import importlib
import os
import pathlib
import statistics
import subprocess
import time

import torch

SUITES = {"structure": "Reductions, softmax, scans, broadcasts, movement, indexing and losses",
          "loops": "Functions of numbers",
          "norms": "Normalisation, embedding and upsampling",
          "attention": "Attention",
          "optimizers": "Optimizer steps"}


def milliseconds(run):
    """As milliseconds_of() of stopwatch.h."""
    def train(runs):
        start = time.process_time()
        for _ in range(runs):
            run()
        return max(time.process_time() - start, 1e-6) / runs

    train(2)
    runs = int(min(max(0.03 / train(2), 1), 10000))
    return 1e3 * statistics.median(train(runs) for _ in range(5))


def figures(program, name):
    """Of one run of the program: the numbers of a case by dtype."""
    lines = subprocess.run([program, name], check=True, capture_output=True, text=True,
                           env={**os.environ, "OMP_NUM_THREADS": "1"}).stdout.splitlines()
    return {dtype: [float(number) for number in numbers] for _, dtype, *numbers in map(str.split, lines)}


def compare(suite, program, name, rounds):
    """{(figure, dtype): [(ours, theirs) of each round]}"""
    found = {}
    for _ in range(rounds):
        for dtype, ours in getattr(suite, "figures", figures)(program, name).items():
            columns = [(figure, ours[place]) for figure, place in suite.FIGURES.items() if place < len(ours)]
            for (figure, mine), run in zip(columns, suite.runs(name, getattr(torch, dtype))):
                found.setdefault((figure, dtype), []).append((mine, milliseconds(run)))
    return found


def cell(pairs, target):
    ratio = statistics.median(theirs / ours for ours, theirs in pairs)
    text = f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"
    text = text if ratio >= target else f"**{text}**"
    return f"{statistics.median(ours for ours, _ in pairs):.4f} ms, {text}"


def table(bin_dir, suite_name, only, rounds):
    suite = importlib.import_module(f"pytorch_{suite_name}")
    print(f"## {SUITES[suite_name]}")
    last_target = last_dtypes = None
    for name in suite.NAMES:
        if only not in name:
            continue
        found = compare(suite, bin_dir / f"{suite_name}_bench", name, rounds)
        target = suite.target(name)
        dtypes = list(dict.fromkeys(dtype for _, dtype in found))
        if target != last_target:
            print(f"\nTarget: {'not slower' if target == 1 else f'{target} times as fast'}.")
        if (target, dtypes) != (last_target, last_dtypes):
            print(f"\n| case | {' | '.join(dtypes)} |\n|---|{'---|' * len(dtypes)}")
        last_target, last_dtypes = target, dtypes
        for figure in dict.fromkeys(figure for figure, _ in found):
            cells = [cell(found[figure, dtype], target) for dtype in dtypes]
            print(f"| {name}{', ' + figure if figure else ''} | {' | '.join(cells)} |", flush=True)
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path, help="the folder of the bench programs")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SUITES))
    parser.add_argument("--only", default="", metavar="PART", help="cases that have this in their name")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    for suite in arguments.suites:
        if suite not in SUITES:
            parser.error(f"{suite} is not one of {', '.join(SUITES)}")
    torch.set_num_threads(1)
    torch.manual_seed(1)
    for suite in arguments.suites or SUITES:
        table(arguments.bin.resolve(), suite, arguments.only, arguments.rounds)


if __name__ == "__main__":
    main()
