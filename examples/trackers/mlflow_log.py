#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Logs a run to MLflow while it trains:

    lockstep train JOB --run-dir runs/a --on-event 'python3 examples/trackers/mlflow_log.py runs/a'

MLFLOW_TRACKING_URI says where to; without it MLflow's own default. Run names and settings come from the run's directory.
"""
import json
import sys
from pathlib import Path

import mlflow

run_dir = Path(sys.argv[1])
mlflow.set_experiment("lockstep")
with mlflow.start_run(run_name=run_dir.name) as run:
    mlflow.log_artifact(str(run_dir / "job.pbtxt"))
    for text in sys.stdin:
        line = json.loads(text)
        numbers = {name: value for name, value in line.items()
                   if type(value) in (int, float) and name not in ("step", "epoch", "time")}
        event = line.get("event")
        if event is None:
            mlflow.log_metrics(numbers, step=line["step"])
        elif event == "eval":
            mlflow.log_metrics({"eval." + name: value for name, value in numbers.items()}, step=line["step"])
        else:
            mlflow.set_tag(event, line["step"])
