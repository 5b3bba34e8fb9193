# SPDX-License-Identifier: Apache-2.0
"""All-reduce of float32 over gloo, as DistributedDataParallel does it: PyTorch's side of scripts/bench --network.

  PYTHON-WITH-TORCH tests/bench/pytorch_allreduce.py BYTES ROUNDS

Started as torchrun does. Rank 0 prints a JSON line with the microseconds of each round.
"""
import json
import sys
import time

import torch
from torch import distributed


def main():
    count, rounds = int(sys.argv[1]) // 4, int(sys.argv[2])
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    values = torch.zeros(count)
    times = []
    for _ in range(1 + rounds):  # one to warm up
        distributed.barrier()
        since = time.perf_counter()
        distributed.all_reduce(values)
        times.append(1e6 * (time.perf_counter() - since))
    if distributed.get_rank() == 0:
        print(json.dumps({"us": times[1:], "torch": torch.__version__}), flush=True)
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
