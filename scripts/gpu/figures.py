# SPDX-License-Identifier: Apache-2.0
"""Rows of the report out of what was measured, each with its target where there is one."""
import statistics

BATCH = {"mlp": 512, "digits": 64, "gpt2": 16, "resnet50": 256}
TITLES = {"mlp": "MLP, 3 x 4096, batch 512, SGD, MSE, fp16", "digits": "digits convnet, batch 64, fp16",
          "gpt2": "GPT-2, 124 million parameters, 16 x 1024 tokens, AdamW, bf16",
          "resnet50": "ResNet-50, batch 256, fp16, channels last, synthetic images"}
# By table and row; those in absolute units are for an H200. (sense, value, as text)
TARGETS = {
    ("mlp", "step"): ("<=", 0.350, "<= 0.35 ms"),
    ("mlp", "eager"): (">=", 2.5, ">= 2.5"),
    ("mlp", "compile"): (">=", 1.6, ">= 1.6"),
    ("mlp", "memory"): ("<=", 0.9, "<= 0.9"),
    ("mlp", "start"): ("<=", 800.0, "<= 800 ms"),
    # 9,000 images a second
    ("resnet50", "step"): ("<=", 256 / 9.0, "<= 28.4 ms, then 21.3 ms"),
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


def step_rows(name, programs):
    """Steps on a batch that lies on the device. programs: {name: {"ready", "rounds"}}, ours and PyTorch's."""
    title, batch, rows = TITLES[name], BATCH[name], []

    def of(program, key):
        return median([result.get(key) for result in programs[program]["rounds"]])

    steps = {program: of(program, "step_ms") for program in programs}
    steps = {program: step for program, step in steps.items() if step}
    ours = [program for program in steps if program.startswith("Lockstep")]
    best = min(ours, key=steps.get) if ours else None
    for program, step in steps.items():
        first = program == best
        rows.append(row(title, f"step, {program}", step, f"{step:.3f} ms = {1e3 * batch / step:,.0f} samples/s",
                        (name, "step") if first and (name, "step") in TARGETS else None))
        for key, what, unit, target in (("host_us", "host work", " us", "host"),
                                        ("host_waits", "host waits", "", "waits"),
                                        ("graph_nodes", "kernels and copies", "", None)):
            value = of(program, key)
            if value is not None:
                rows.append(row(title, f"{what} a step, {program}", value, f"{value:.4g}{unit}",
                                ("any", target) if first and target else None))
    for program in steps:
        if best is None or program in ours:
            continue
        mode = program.split()[-1]
        ratio = steps[program] / steps[best]
        rows.append(row(title, f"{program}'s step / Lockstep's", ratio, f"{ratio:.2f}",
                        (name, mode) if (name, mode) in TARGETS else None))
        mine, theirs = of(best, "peak_memory_bytes"), of(program, "peak_memory_bytes")
        if mine and theirs:
            rows.append(row(title, f"peak memory, Lockstep's / {program}'s", mine / theirs,
                            f"{mine / 2**20:,.0f} MiB / {theirs / 2**20:,.0f} MiB = {mine / theirs:.2f}",
                            ("mlp", "memory") if (name, mode) == ("mlp", "eager") else None))
    return rows


def start_rows(name, programs, runs):
    """The whole command: its start, and its steps with data that is loaded. runs: [summary.json]."""
    title, rows = TITLES[name], []
    start = median([summary.get("time_to_first_step_ms") for summary in runs])
    step = median([summary.get("step_ms_p50") for summary in runs])
    if start is not None and step:
        rows.append(row(title, "start to first step, lockstep train", start, f"{start:,.0f} ms",
                        (name, "start") if (name, "start") in TARGETS else None))
    for program, measured in programs.items():
        if program.startswith("PyTorch") and measured["ready"]:
            theirs = measured["ready"]["first_step_ms"]
            rows.append(row(title, f"start to first step, {program}", theirs, f"{theirs:,.0f} ms"))
    if step:
        rows.append(row(title, "step with loading data, lockstep train", step,
                        f"{step:.3f} ms = {1e3 * BATCH[name] / step:,.0f} samples/s"))
    return rows


def kernel_rows(lines, peers):
    """lines: gpu_bench's; peers: programs by workload, for PyTorch's optimizers."""
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
        rounds = peers.get(workload, {}).get("PyTorch eager", {"rounds": []})["rounds"]
        theirs = median([result.get("step_ms") for result in rounds])
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
        programs = raw["steps"].get(name, {})
        rows += step_rows(name, programs) + start_rows(name, programs, raw["train"].get(name, []))
    return rows + kernel_rows(raw["gpu_bench"], raw["steps"]) + digits_rows(raw["digits"])
