# SPDX-License-Identifier: Apache-2.0
"""What the turns of scripts/compare amount to: rows, and the page that has them.

Measured of a model: {side's name: {losses, step_ms [a round each], peak, growth} or {problem}}; sides are "Lockstep
PRECISION" and "PyTorch PRECISION", which may end in " compiled".
"""
import statistics

# Of a loss, relative: 16 bits round each operation.
TOLERANCE = {"fp32": 1e-3, "bf16": 3e-2, "fp16": 1e-2}


def measured(sides, name):
    return {side: values for side, values in sides.items() if side.startswith(name) and "problem" not in values}


def fastest(sides):
    """PyTorch's side with the shortest median step; None where none ran."""
    return min(measured(sides, "PyTorch"), key=lambda side: statistics.median(sides[side]["step_ms"]), default=None)


def ratios(ours, theirs):
    """Of each round: how many times as long theirs took."""
    return [their / our for our, their in zip(ours["step_ms"], theirs["step_ms"])]


def disagreement(ours, theirs):
    """The largest relative difference of a loss."""
    return max(abs(a - b) / max(abs(b), 1e-6) for a, b in zip(ours["losses"], theirs["losses"]))


def rows_of(model, sides):
    """A row a precision: a dict."""
    best = fastest(sides)
    rows = []
    for name, ours in sides.items():
        if not name.startswith("Lockstep"):
            continue
        precision = name.split()[1]
        row = {"model": model, "precision": precision, "problems": [f"{side}: {sides[side]['problem']}" for side in
               (name, f"PyTorch {precision}", f"PyTorch {precision} compiled") if "problem" in sides.get(side, {})]}
        theirs = sides.get(f"PyTorch {precision}", {"problem": ""})
        if "problem" not in ours:
            row |= {"ours_ms": statistics.median(ours["step_ms"]), "our_peak": ours["peak"], "our_growth": ours["growth"]}
            if best:
                against_best = ratios(ours, sides[best])
                row |= {"best": best, "best_ms": statistics.median(sides[best]["step_ms"]),
                        "ratio": statistics.median(against_best), "spread": [min(against_best), max(against_best)]}
            if "problem" not in theirs:
                row |= {"theirs_ms": statistics.median(theirs["step_ms"]), "their_peak": theirs["peak"],
                        "their_growth": theirs["growth"], "disagreement": disagreement(ours, theirs),
                        "same_ratio": statistics.median(ratios(ours, theirs))}
                row["agrees"] = row["disagreement"] <= TOLERANCE[precision]
        rows.append(row)
    return rows


def misses(rows):
    """What a reader should look at: a line each."""
    lines = []
    for row in rows:
        what = f"{row['model']}, {row['precision']}"
        lines += [f"{what}: not measured: {problem}" for problem in row["problems"]]
        if not row.get("agrees", True):
            lines.append(f"{what}: losses differ by {row['disagreement']:.1e}, so the sides did not train alike")
        if row.get("ratio", 1) < 1:
            lines.append(f"{what}: slower than {row['best']}: {row['ratio']:.2f}")
        if row.get("our_peak", 0) > row.get("their_peak", float("inf")):
            lines.append(f"{what}: a process of Lockstep's holds more memory")
        if row.get("our_growth", 0) > row.get("their_growth", float("inf")):
            lines.append(f"{what}: Lockstep takes more memory beyond its start")
    return lines


def mib(size):
    return f"{size / 2**20:.0f}"


def cell(row, key, form):
    return form(row[key]) if key in row else "-"


def page(title, where, rows):
    lines = [f"# {title}", "", where, "",
             "A step is forward, loss, backward, the gradients' all-reduce and the update, on a batch that lies in memory. Both "
             "sides start from the same weights and take the same batch. `losses` is the largest relative difference of the "
             "first five. `same` is PyTorch's step in the same precision over Lockstep's; `fastest` that of PyTorch's fastest "
             "precision for the model, with the smallest and largest of the rounds: above 1 Lockstep is faster. Memory is the "
             "most that a process (a rank) holds in a step, in MiB; behind it what it takes beyond the libraries, which lie in "
             "memory before there is a model.", "",
             "| model | precision | losses | Lockstep | PyTorch | same | PyTorch's fastest | fastest | memory: Lockstep | PyTorch |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        ratio = "-"
        if "ratio" in row:
            ratio = f"{row['ratio']:.2f} ({row['spread'][0]:.2f} to {row['spread'][1]:.2f})"
            ratio = ratio if row["ratio"] >= 1 else f"**{ratio}**"
        milliseconds = "{:.2f} ms".format
        best = f"{row['best'].removeprefix('PyTorch ')}, {milliseconds(row['best_ms'])}" if "best" in row else "-"
        memory = [f"{mib(row[f'{side}_peak'])}; {mib(row[f'{side}_growth'])}" if f"{side}_peak" in row else "-"
                  for side in ("our", "their")]
        lines.append("| " + " | ".join([
            row["model"], row["precision"], cell(row, "disagreement", "{:.1e}".format), cell(row, "ours_ms", milliseconds),
            cell(row, "theirs_ms", milliseconds), cell(row, "same_ratio", "{:.2f}".format), best, ratio, *memory]) + " |")
    found = misses(rows)
    if found:
        lines += ["", "To look at:", "", *(f"- {line}" for line in found)]
    return "\n".join(lines) + "\n"
