# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of scripts/gpu_check --bench: the same networks on the same GPU, as its users would train them.

  python3 tests/bench/pytorch_gpu.py --workload mlp|resnet50|digits|gpt2|sgd|adam [--mode eager|compile]

Eager: autocast, GradScaler, a fused optimizer, channels last. compile: the same model through
torch.compile(mode="max-autotune"). The batch lies on the device from the start. sgd and adam measure the optimizer
alone: the scaler's check, the fused update and the cast of the weights to 16 bits that autocast makes in each step.

Warms up, prints one JSON line, and then runs a round of steps and prints a line for each line that it reads, so that
whoever measures can let several programs take turns. Ends at the end of its input.
"""
import argparse
import json
import statistics
import sys
import time

import torch
from torch import nn

import hugging_face

ARGUMENTS = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ARGUMENTS.add_argument("--workload", required=True, choices=["mlp", "resnet50", "digits", "gpt2", "sgd", "adam"])
ARGUMENTS.add_argument("--mode", default="eager", choices=["eager", "compile"])
ARGUMENTS.add_argument("--dtype", default="float16", choices=["float16", "bfloat16"])
ARGUMENTS.add_argument("--seconds", type=float, default=1.0, help="how long a round lasts, about")
ARGUMENTS.add_argument("--started", type=float, help="when the process was started, in seconds since 1970")
ARGUMENTS.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help="cpu: to try the script itself")
ARGUMENTS.add_argument("--tiny", action="store_true", help="a hundredth of the size, likewise")


def mlp(device, tiny):
    width, batch = (64, 16) if tiny else (4096, 512)
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                          nn.Linear(width, width)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    x, y = torch.randn(batch, width, device=device), torch.randn(batch, width, device=device)
    return model, optimizer, nn.MSELoss(), x, y


def resnet50(device, tiny):
    import torchvision

    extent, batch = (32, 2) if tiny else (224, 256)
    model = torchvision.models.resnet50().to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, fused=True)
    x = torch.randn(batch, 3, extent, extent, device=device).contiguous(memory_format=torch.channels_last)
    return model, optimizer, nn.CrossEntropyLoss(), x, torch.randint(1000, (batch,), device=device)


def digits(device, tiny):
    batch = 8 if tiny else 64
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(1024, 10)).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, fused=True)
    x = torch.randn(batch, 1, 8, 8, device=device).contiguous(memory_format=torch.channels_last)
    return model, optimizer, nn.CrossEntropyLoss(), x, torch.randint(10, (batch,), device=device)


def gpt2(device, tiny):
    vocabulary, context, batch = (128, 16, 2) if tiny else (50304, 1024, 16)
    sizes = {"n_embd": 64, "n_layer": 2, "n_head": 2} if tiny else {}
    model = hugging_face.gpt2(vocabulary, context, **sizes).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    tokens = torch.randint(vocabulary, (batch, context + 1), device=device)
    return model, optimizer, nn.CrossEntropyLoss(), tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


CLIP_NORM = {"gpt2": 1.0}


def training_step(arguments, dtype):
    """(step, parameters)"""
    make = {"mlp": mlp, "resnet50": resnet50, "digits": digits, "gpt2": gpt2}[arguments.workload]
    clip_norm = CLIP_NORM.get(arguments.workload)
    model, optimizer, loss_of, x, y = make(arguments.device, arguments.tiny)
    scaler = torch.amp.GradScaler(arguments.device, enabled=dtype == torch.float16)
    run = torch.compile(model, mode="max-autotune") if arguments.mode == "compile" else model

    def step():
        if arguments.mode == "compile":
            torch.compiler.cudagraph_mark_step_begin()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(arguments.device, dtype=dtype):
            loss = loss_of(run(x), y)
        scaler.scale(loss).backward()
        if clip_norm:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        scaler.step(optimizer)
        scaler.update()

    return step, sum(p.numel() for p in model.parameters())


def optimizer_step(arguments, dtype):
    """(step, parameters): what a step does behind backward, and the casts that autocast makes of every weight."""
    width, count = (64, 2) if arguments.tiny else (4096, 6)
    weights = [torch.randn(width, width, device=arguments.device).requires_grad_() for _ in range(count)]
    copies = [torch.empty_like(w, dtype=dtype) for w in weights]
    for w in weights:
        w.grad = torch.randn_like(w) * 1e-3
    if arguments.workload == "sgd":
        optimizer = torch.optim.SGD(weights, lr=1e-3, momentum=0.9, fused=True)
    else:
        optimizer = torch.optim.Adam(weights, lr=1e-3, fused=True)
    scaler = torch.amp.GradScaler(arguments.device, init_scale=1.0, growth_interval=10**9)
    scaler.scale(torch.zeros((), device=arguments.device))

    def step():
        scaler.step(optimizer)
        scaler.update()
        with torch.no_grad():
            torch._foreach_copy_(copies, weights)

    return step, count * width * width


class Clock:
    """Times steps on the device, and on the host what it takes to launch them."""

    def __init__(self, device):
        self.on_gpu = device == "cuda"

    def mark(self):
        if not self.on_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def wait(self):
        if self.on_gpu:
            torch.cuda.synchronize()

    def milliseconds(self, begin, end):
        return begin.elapsed_time(end) if self.on_gpu else 1e3 * (end - begin)

    def round(self, step, count):
        marks, host = [self.mark()], []
        for _ in range(count):
            start = time.perf_counter()
            step()
            host.append(1e6 * (time.perf_counter() - start))
            marks.append(self.mark())
        self.wait()
        times = [self.milliseconds(a, b) for a, b in zip(marks, marks[1:])]
        # The first steps find an idle device, which a train of steps does not.
        kept = times[len(times) // 4 :]
        return {"step_ms": statistics.median(kept), "host_us": statistics.median(host), "steps": count}


def main():
    arguments = ARGUMENTS.parse_args()
    started = arguments.started or time.time()
    dtype = getattr(torch, arguments.dtype)
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    make = optimizer_step if arguments.workload in ("sgd", "adam") else training_step
    step, parameters = make(arguments, dtype)
    clock = Clock(arguments.device)
    step()
    clock.wait()
    first_step_ms = 1e3 * (time.time() - started)
    clock.round(step, 10)
    count = max(4, min(2000, int(1e3 * arguments.seconds / clock.round(step, 8)["step_ms"])))
    if clock.on_gpu:
        torch.cuda.reset_peak_memory_stats()
    ready = {"ready": True, "workload": arguments.workload, "mode": arguments.mode, "torch": torch.__version__,
             "first_step_ms": first_step_ms, "parameters": parameters}
    print(json.dumps(ready), flush=True)
    for _ in sys.stdin:
        result = clock.round(step, count)
        if clock.on_gpu:
            result["peak_memory_bytes"] = torch.cuda.max_memory_allocated()
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
