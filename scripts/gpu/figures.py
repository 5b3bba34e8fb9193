# SPDX-License-Identifier: Apache-2.0
"""Rows of the report out of what was measured, each with its target where there is one."""
import statistics

BATCH = {"mlp": 512, "digits": 64, "resnet50": 256}
TITLES = {"mlp": "MLP, 3 x 4096, batch 512, SGD, MSE, fp16", "digits": "digits convnet, batch 64, fp16",
          "resnet50": "ResNet-50, batch 256, fp16, channels last, synthetic images"}
# By table and row; those in absolute units are for an H200. (sense, value, as text)
TARGETS = {
    ("mlp", "step"): ("<=", 0.280, "<= 0.28 ms"),
    ("mlp", "eager"): (">=", 2.5, ">= 2.5"),
    ("mlp", "compile"): (">=", 1.6, ">= 1.6"),
    ("mlp", "memory"): ("<=", 0.9, "<= 0.9"),
    ("mlp", "start"): ("<=", 800.0, "<= 800 ms"),
    ("resnet50", "rate"): (">=", 9000.0, ">= 9,000, then 12,000 /s"),
    ("resnet50", "start"): ("<=", 1500.0, "<= 1,500 ms"),
    ("any", "host"): ("<=", 20.0, "<= 20 us"),
    ("any", "waits"): ("<=", 0.0, "0"),
    ("optimizer", "share"): (">=", 0.9, ">= 90 % of a copy"),
    ("digits", "accuracy"): (">=", 0.975, ">= 97.5 %"),
}


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def row(table, what, value, text, target=None):
    """`value` in the target's unit; a row without a value is left out by whoever asks for it."""
    result = {"table": table, "what": what, "value": value, "text": text, "target": None, "met": None}
    if target:
        sense, bound, words = TARGETS[target]
        result["target"] = words
        result["met"] = value <= bound if sense == "<=" else value >= bound
    return result


def named(variant):
    return "Lockstep" + (f", {variant}" if variant else "")


def training_rows(name, ours, peers):
    """ours: {variant: [summary]}; peers: {mode: {"ready", "rounds"}}"""
    title, batch, rows = TITLES[name], BATCH[name], []
    steps = {variant: median([s.get("step_ms_p50") for s in runs]) for variant, runs in ours.items()}
    steps = {variant: step for variant, step in steps.items() if step}
    best = min(steps, key=steps.get) if steps else None
    for variant, step in steps.items():
        first = variant == best
        rows.append(row(title, f"step, {named(variant)}", step, f"{step:.3f} ms",
                        ("mlp", "step") if name == "mlp" and first else None))
        rows.append(row(title, f"samples, {named(variant)}", 1e3 * batch / step, f"{1e3 * batch / step:,.0f} /s",
                        ("resnet50", "rate") if name == "resnet50" and first else None))
        for key, what, target in (("host_us_per_step", "host work a step", "host"),
                                  ("host_waits", "host waits a step", "waits")):
            value = median([s.get(key) for s in ours[variant]])
            if value is not None:
                text = f"{value:.1f} us" if target == "host" else f"{value:g}"
                rows.append(row(title, f"{what}, {named(variant)}", value, text, ("any", target) if first else None))
        start = median([s.get("time_to_first_step_ms") for s in ours[variant]])
        if start is not None:
            rows.append(row(title, f"start to first step, {named(variant)}", start, f"{start:.0f} ms",
                            (name, "start") if first and (name, "start") in TARGETS else None))
    memory = median([s.get("peak_memory_bytes") for s in ours[best]]) if best is not None else None
    for mode, peer in peers.items():
        step = median([r.get("step_ms") for r in peer["rounds"]])
        if not step:
            continue
        rows.append(row(title, f"step, PyTorch {mode}", step, f"{step:.3f} ms"))
        rows.append(row(title, f"samples, PyTorch {mode}", 1e3 * batch / step, f"{1e3 * batch / step:,.0f} /s"))
        host = median([r.get("host_us") for r in peer["rounds"]])
        rows.append(row(title, f"host work a step, PyTorch {mode}", host, f"{host:.1f} us"))
        start = peer["ready"]["first_step_ms"]
        rows.append(row(title, f"start to first step, PyTorch {mode}", start, f"{start:.0f} ms"))
        if best is not None:
            ratio = step / steps[best]
            rows.append(row(title, f"PyTorch {mode}'s step / Lockstep's", ratio, f"{ratio:.2f}",
                            (name, mode) if (name, mode) in TARGETS else None))
        theirs = median([r.get("peak_memory_bytes") for r in peer["rounds"]])
        if memory and theirs:
            rows.append(row(title, f"peak memory, Lockstep's / PyTorch {mode}'s", memory / theirs,
                            f"{memory / 2**20:,.0f} MiB / {theirs / 2**20:,.0f} MiB = {memory / theirs:.2f}",
                            ("mlp", "memory") if name == "mlp" and mode == "eager" else None))
    if memory and not peers:
        rows.append(row(title, "peak memory, Lockstep", memory, f"{memory / 2**20:,.0f} MiB"))
    return rows


def kernel_rows(lines, peers):
    """lines: gpu_bench's; peers: PyTorch's by workload, for the optimizers."""
    by_name = {line["name"]: line for line in lines if "error" not in line}
    copy = by_name.get("copy", {}).get("gb_per_s")
    rows = []
    for name, line in by_name.items():
        rate = line.get("gb_per_s")
        if rate is None:
            text = f"{line['us']:,.1f} us" + (f", {line['tflop_per_s']:,.0f} TFLOP/s" if "tflop_per_s" in line else "")
            rows.append(row("Kernels", name, line.get("tflop_per_s", line["us"]), text))
            continue
        share = rate / copy if copy else None
        text = f"{line['us']:,.1f} us, {rate:,.0f} GB/s" + (f" = {100 * share:.0f} % of a copy" if share else "")
        optimizer = name in ("sgd momentum with inf check", "adam with inf check") and share
        rows.append(row("Kernels", name, share if share else rate, text, ("optimizer", "share") if optimizer else None))
    for workload, name in (("sgd", "sgd momentum with inf check"), ("adam", "adam with inf check")):
        theirs = median([r.get("step_ms") for r in peers.get(workload, {}).get("eager", {"rounds": []})["rounds"]])
        if theirs and name in by_name:
            # Both update the same number of parameters.
            ratio = 1e3 * theirs / by_name[name]["us"]
            rows.append(row("Kernels", f"PyTorch's fused {workload} with scaler and casts / {name}", ratio,
                            f"{1e3 * theirs:,.1f} us = {ratio:.2f} x"))
    return rows


def digits_rows(runs):
    rows = []
    for name, found in runs.items():
        accuracy = (found["summary"].get("eval") or {}).get("accuracy")
        if accuracy is not None:
            rows.append(row("Digits, trained to the end in fp16", f"test accuracy, {name}", accuracy,
                            f"{100 * accuracy:.2f} %", ("digits", "accuracy")))
        rows.append(row("Digits, trained to the end in fp16", f"the whole command, {name}", found["seconds"],
                        f"{found['seconds']:.1f} s"))
    return rows


def rows_of(raw):
    rows = []
    for name in TITLES:
        rows += training_rows(name, raw["lockstep"].get(name, {}), raw["pytorch"].get(name, {}))
    return rows + kernel_rows(raw["gpu_bench"], raw["pytorch"]) + digits_rows(raw["digits"])
