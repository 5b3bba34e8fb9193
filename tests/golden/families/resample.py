# SPDX-License-Identifier: Apache-2.0
"""Bilinear scaling of images with antialias, behind a crop and before one."""

import torch
from torch.nn import functional as F

from families.tensors import tensor


def scaled(image, height, width):
    return F.interpolate(image, (height, width), mode="bilinear", antialias=True, align_corners=False)


def channels_last(image):
    return tensor(image[0].permute(1, 2, 0))


def cases():
    image = torch.randint(0, 256, (1, 3, 11, 17)).double()
    crops = {}
    for name, (left, top, width, height, size) in {
        "smaller": (2, 1, 13, 9, 4), "much smaller": (0, 0, 17, 11, 2), "larger": (5, 3, 4, 3, 7),
        "one way each": (1, 2, 14, 3, 5), "one pixel": (16, 10, 1, 1, 3),
    }.items():
        part = image[:, :, top:top + height, left:left + width]
        crops[name] = {"box": [left, top, width, height], "size": size,
                       "y": channels_last(scaled(part, size, size) / 255)}
    centers = {}
    for name, (resize, size) in {"smaller": (7, 5), "larger": (16, 13), "same": (11, 8)}.items():
        width = resize * 17 // 11
        left, top = round((width - size) / 2), round((resize - size) / 2)
        whole = scaled(image, resize, width)
        centers[name] = {"resize": resize, "size": size,
                         "y": channels_last(whole[:, :, top:top + size, left:left + size] / 255)}
    return {"image": {"x": channels_last(image)}, "crops": crops, "centers": centers}
