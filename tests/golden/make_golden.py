#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden files: what PyTorch computes in float64 for the operations that follow its semantics.

  make_golden.py [FAMILY...]           writes FAMILY.json for each, or for all
  make_golden.py --check [FAMILY...]   computes them again and compares: numbers to 1e-12, or the module's TOLERANCE

Run it with a Python that has torch. Each module of families/ has a function cases(), which returns groups of named
cases; it starts from the same seed whichever other families are written. Tensors are written in Lockstep's order: images
[N, spatial..., C], convolution weights [O, kernel..., C / groups].
"""

import importlib
import json
import pathlib
import sys

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))


def families():
    return sorted(path.stem for path in (HERE / "families").glob("*.py") if path.stem != "tensors")


def computed(family):
    torch.manual_seed(20240229)
    torch.set_default_dtype(torch.float64)
    return {"pytorch": {"version": torch.__version__}, **importlib.import_module(f"families.{family}").cases()}


def text_of(golden):
    """One line a case: a diff shows which one changed."""
    groups = []
    for group, cases in golden.items():
        lines = [f"{json.dumps(name)}:{json.dumps(case, separators=(',', ':'))}" for name, case in cases.items()]
        groups.append(json.dumps(group) + ":{\n" + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(groups) + "\n}\n"


def differences(stored, found, path, tolerance):
    if isinstance(stored, dict) and isinstance(found, dict) and stored.keys() == found.keys():
        for key in stored:
            yield from differences(stored[key], found[key], f"{path}.{key}", tolerance)
    elif isinstance(stored, list) and isinstance(found, list) and len(stored) == len(found):
        for i, pair in enumerate(zip(stored, found)):
            yield from differences(*pair, f"{path}[{i}]", tolerance)
    elif isinstance(stored, float) and isinstance(found, (int, float)):
        if abs(stored - found) > tolerance * max(1.0, abs(stored)):
            yield f"{path}: {stored!r} in the file, {found!r} now"
    elif stored != found:
        yield f"{path}: {stored!r} in the file, {found!r} now"


def check(family):
    stored, found = json.loads((HERE / f"{family}.json").read_text()), json.loads(text_of(computed(family)))
    del stored["pytorch"], found["pytorch"]  # another version computes the same
    tolerance = getattr(importlib.import_module(f"families.{family}"), "TOLERANCE", 1e-12)
    lines = list(differences(stored, found, family, tolerance))
    print("\n".join(lines) if lines else f"{family}: the same")
    return not lines


def main(arguments):
    checking = "--check" in arguments
    chosen = [argument for argument in arguments if argument != "--check"] or families()
    if unknown := [family for family in chosen if family not in families()]:
        sys.exit(f"make_golden: no family {', '.join(unknown)}; there are {', '.join(families())}")
    if checking:
        return 0 if all([check(family) for family in chosen]) else 1
    for family in chosen:
        (HERE / f"{family}.json").write_text(text_of(computed(family)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
