#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Logs a run to Weights & Biases while it trains:

    lockstep train JOB --run-dir runs/a --on-event 'python3 examples/trackers/wandb_log.py runs/a'

WANDB_PROJECT and WANDB_MODE are its own variables. Its metrics come in the order of the steps: a resumed run, which trains
steps again, is a new one there.
"""
import json
import sys
from pathlib import Path

import wandb

run_dir = Path(sys.argv[1])
with wandb.init(name=run_dir.name) as run:
    run.save(str(run_dir / "job.pbtxt"))
    for text in sys.stdin:
        line = json.loads(text)
        numbers = {name: value for name, value in line.items()
                   if type(value) in (int, float) and name not in ("step", "time")}
        event = line.get("event")
        if event is None:
            run.log(numbers, step=line["step"])
        elif event == "eval":
            run.log({"eval/" + name: value for name, value in numbers.items()}, step=line["step"])
        else:
            run.summary[event] = line["step"]
