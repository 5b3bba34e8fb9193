# SPDX-License-Identifier: Apache-2.0
"""What MONAI's sliding_window_inference makes of a model whose answer depends on a voxel's place in its window."""

import torch
from monai.inferers.utils import compute_importance_map, sliding_window_inference
from monai.utils import BlendMode

CHANNELS = 2
# Importance maps are float32.
TOLERANCE = 1e-6


def volume_of(extents):
    """Voxel i, channels last, is ((37 i) mod 101 - 50) / 50."""
    count = torch.Size(extents).numel() * CHANNELS
    return ((torch.arange(count) * 37 % 101 - 50) / 50).double().reshape(1, *extents, CHANNELS).movedim(-1, 1)


def model(windows):
    """(x0 - 2 x1) (1 + i), and x1 + i, for voxel i of the window."""
    place = torch.arange(windows[0, 0].numel()).double().reshape(windows.shape[2:])
    first, second = windows[:, 0], windows[:, 1]
    return torch.stack([(first - 2 * second) * (1 + place), second + place], 1)


def case(extents, patch, overlap, mode, sigma_scale=0.125):
    y = sliding_window_inference(volume_of(extents), patch, 3, model, overlap, mode, sigma_scale)
    weights = compute_importance_map(patch, mode, sigma_scale, dtype=torch.float32)
    return {"extents": extents, "patch": patch, "overlap": overlap, "gaussian": mode == BlendMode.GAUSSIAN,
            "sigma_scale": sigma_scale, "weights": weights.double().expand(patch).flatten().tolist(),
            "y": y[0].movedim(0, -1).flatten().tolist()}


def cases():
    return {"sliding_window": {
        "constant": case([5, 6, 7], [4, 4, 4], 0.25, BlendMode.CONSTANT),
        "gaussian": case([5, 6, 7], [4, 4, 4], 0.25, BlendMode.GAUSSIAN),
        "half": case([4, 7, 5], [2, 3, 4], 0.5, BlendMode.GAUSSIAN, 0.25),
        "no_overlap": case([5, 3, 4], [2, 3, 3], 0.0, BlendMode.CONSTANT),
        "dense": case([3, 4, 3], [2, 2, 3], 0.9, BlendMode.GAUSSIAN),
        "smaller": case([3, 6, 2], [4, 4, 5], 0.25, BlendMode.GAUSSIAN),
        "one_window": case([2, 2, 3], [2, 2, 3], 0.25, BlendMode.CONSTANT),
    }}
