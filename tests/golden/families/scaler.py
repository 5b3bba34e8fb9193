# SPDX-License-Identifier: Apache-2.0
"""What torch.amp.GradScaler does in 200 steps of two SGD optimizers that share it."""

import json

import torch

STEPS = 200
SAVED_AFTER = 100
NEW_SCALE_AT, NEW_SCALE = 150, 48.0
OPTIONS = {"init_scale": 1024.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 7}
# Which optimizers' gradients overflow: alone, both, in a row, where the scale would have grown, and in the step whose
# update names a new scale.
OVERFLOWS = {3: [0], 4: [1], 6: [0, 1], 13: [0], 27: [1], 41: [0], 42: [0], 77: [1], 95: [0], 100: [1], 101: [0],
             121: [1], 150: [0], 180: [1]}


def scaler_trace():
    scaler = torch.amp.GradScaler("cpu", **OPTIONS)
    weights = [torch.ones(1, dtype=torch.float32, requires_grad=True) for _ in range(2)]
    optimizers = [torch.optim.SGD([weight], lr=2.0**-10) for weight in weights]
    steps, saved = [], None
    for step in range(STEPS):
        if step == SAVED_AFTER:
            saved = json.dumps(scaler.state_dict())
            scaler = torch.amp.GradScaler("cpu", **{**OPTIONS, "init_scale": 2.0})
            scaler.load_state_dict(json.loads(saved))
        overflows = OVERFLOWS.get(step, [])
        for i, (weight, optimizer) in enumerate(zip(weights, optimizers)):
            optimizer.zero_grad()
            scaler.scale((weight * (float("inf") if i in overflows else 1.0)).sum()).backward()
        before = [weight.item() for weight in weights]
        for optimizer in optimizers:
            scaler.step(optimizer)
        scaler.update(NEW_SCALE if step == NEW_SCALE_AT else None)
        steps.append({"overflows": overflows, "skipped": [int(weight.item() == old) for weight, old in zip(weights, before)],
                      "scale": scaler.get_scale(), "tracker": scaler._get_growth_tracker(),
                      "weights": [weight.item() for weight in weights]})
    return {"options": OPTIONS, "saved_after": SAVED_AFTER, "saved": saved, "new_scale_at": NEW_SCALE_AT,
            "new_scale": NEW_SCALE, "steps": steps}


def cases():
    assert len(OVERFLOWS) == 14
    return {"grad_scaler": {"trace": scaler_trace()}}
