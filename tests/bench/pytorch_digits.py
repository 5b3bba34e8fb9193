# SPDX-License-Identifier: Apache-2.0
"""The peer of configs/digits_convnet.pbtxt: the same network under PyTorch's DistributedDataParallel over gloo.

Started by scripts/bench once for each rank (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT in the environment); one thread a
rank. Rank 0 prints one JSON line with the median step time.
"""
import argparse
import gzip
import json
import os
import statistics
import struct
import time

import torch
import torch.distributed as dist
from torch import nn


def read_idx(path):
    with gzip.open(path) as file:
        raw = file.read()
    rank = raw[3]
    shape = struct.unpack(f">{rank}I", raw[4 : 4 + 4 * rank])
    return torch.frombuffer(bytearray(raw[4 + 4 * rank :]), dtype=torch.uint8).reshape(shape)


def network():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(1024, 10))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--channels-last", action="store_true")
    args = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(42)
    images = (read_idx(f"{args.data}/train-images-idx3-ubyte.gz").float() / 255 - 0.3) / 0.35
    labels = read_idx(f"{args.data}/train-labels-idx1-ubyte.gz").long()
    model = network()
    if args.channels_last:
        model = model.to(memory_format=torch.channels_last)
    model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    loss_of = nn.CrossEntropyLoss()
    times = []
    order = torch.randperm(len(images))
    for step in range(args.steps):
        start = time.perf_counter()
        rows = order[torch.arange(args.batch) + (step * args.batch) % (len(images) - args.batch)]
        x = images[rows].unsqueeze(1)
        if args.channels_last:
            x = x.contiguous(memory_format=torch.channels_last)
        optimizer.zero_grad(set_to_none=False)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.dtype == "bf16"):
            loss = loss_of(model(x), labels[rows])
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    if dist.get_rank() == 0:
        print(json.dumps({"step_ms": 1e3 * statistics.median(times[len(times) // 3 :]), "loss": loss.item(),
                          "torch": torch.__version__}), flush=True)
    dist.barrier()
    os._exit(0)  # gloo's threads abort some processes that end in order


if __name__ == "__main__":
    main()
