# SPDX-License-Identifier: Apache-2.0
"""The plain U-Net of images."""

from families.unet3d import case


def cases():
    common = {"rank": 2, "channels": 2, "groups": 2, "outputs": 1, "classes": False, "inputs": 3, "activation": "RELU"}
    return {"unet2d": {
        "batch_transposed": case(**common | {"levels": 2, "convolutions": 1, "up": "TRANSPOSED", "norm": "BATCH",
                                             "extents": [4, 8]}),
        "batch_classes": case(**common | {"levels": 1, "convolutions": 2, "up": "TRANSPOSED", "norm": "BATCH",
                                          "extents": [8, 4], "outputs": 4, "classes": True}),
        "instance_bilinear": case(**common | {"levels": 1, "convolutions": 2, "up": "BILINEAR", "norm": "INSTANCE",
                                              "activation": "GELU", "extents": [4, 6], "inputs": 2}),
        "group_classes": case(**common | {"levels": 1, "convolutions": 1, "up": "BILINEAR", "norm": "GROUP",
                                          "extents": [2, 4], "outputs": 3, "classes": True}),
    }}
