# SPDX-License-Identifier: Apache-2.0
"""A Python that says that it has PyTorch, and answers as tests/bench/pytorch_gpu.py does."""
import json
import os
import sys

if sys.argv[1] == "-c":
    print(json.dumps({"folders": [], "torch": os.environ.get("STAND_IN_TORCH", "2.11.0") or None}))
else:
    print(json.dumps({"ready": True, "first_step_ms": 5000.0}), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"step_ms": 0.9, "host_us": 700.0, "peak_memory_bytes": 2**30}), flush=True)
