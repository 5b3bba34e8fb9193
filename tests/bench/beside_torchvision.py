#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`lockstep bench --data` beside torchvision, one thread each, in turns: training images a second and core.

  PYTHON-WITH-TORCHVISION tests/bench/beside_torchvision.py build/release/bin/lockstep [--rounds N] [--json]

Both decode the same JPEGs of about 500 x 375, crop them as RandomResizedCrop(224) does, mirror half of them, normalise
them a channel and put them into batches of 64. Files of shapes and noise, with the bytes that a photograph has, are
made in a temporary folder. torchvision runs as its ImageFolder does, on PIL, and on its own decoder, torchvision.io.
Numbers are images a second that the processor computes, which other programs change less than they do the clock's:
medians of the rounds.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy
import torch
from PIL import Image
from torchvision import io
from torchvision.transforms import v2

IMAGES, BATCH, SECONDS = 128, 64, 2.0
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

JOB = """
seed: 1
model {{ resnet {{ depth: 18 }} }}
data {{
  global_batch: {batch}
  train {{ image_folder {{ folder: "{folder}" size: 224 }} }}
  normalize {{ mean: [0.485, 0.456, 0.406] std: [0.229, 0.224, 0.225] }}
  augment {{ random_resized_crop {{}} flip: true }}
}}
optimizer {{ sgd {{ lr: 0.1 }} }}
train {{ steps: 1 }}
"""


def photograph(rng):
    """Shapes of all scales under some noise: about 60 KB as a JPEG of quality 90."""
    width, height = int(rng.integers(480, 520)), int(rng.integers(360, 390))
    image = numpy.zeros((height, width, 3))
    for scale, weight in ((4, 90), (16, 50), (64, 25), (256, 12)):
        coarse = rng.random((max(height * scale // 512, 2), max(width * scale // 512, 2), 3)) * 255
        layer = Image.fromarray(coarse.astype(numpy.uint8)).resize((width, height), Image.BICUBIC)
        image += weight / 177 * numpy.asarray(layer, dtype=float)
    image += rng.normal(0, 6, image.shape)
    return Image.fromarray(numpy.clip(image, 0, 255).astype(numpy.uint8))


def write_images(folder):
    rng = numpy.random.default_rng(7)
    paths = []
    for i in range(IMAGES):
        path = folder / "ab"[i % 2] / f"{i:04}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        photograph(rng).save(path, quality=90)
        paths.append(path)
    return paths


def ours(program, job):
    out = subprocess.run([program, "bench", "--data", job, "--json", "--seconds", str(SECONDS), "--set",
                          "data.decode_threads=1"], check=True, capture_output=True, text=True).stdout
    return json.loads(out)["speeds"][0]["samples_per_core_s"]


def theirs(paths, decode, transform):
    """Images a second of the processor."""
    order = torch.randperm(len(paths)).tolist()
    count, begin, until = 0, time.process_time(), time.monotonic() + SECONDS
    while time.monotonic() < until:
        for at in range(0, len(order), BATCH):
            torch.stack([transform(decode(paths[i])) for i in order[at:at + BATCH]])
            count += len(order[at:at + BATCH])
    return count / (time.process_time() - begin)


def peers():
    crop = [v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()]
    normalise = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    on_pil = v2.Compose(crop + [v2.PILToTensor()] + normalise)
    on_tensors = v2.Compose(crop + normalise)
    return {"torchvision on PIL": (lambda path: Image.open(path).convert("RGB"), on_pil),
            "torchvision.io": (lambda path: io.decode_jpeg(io.read_file(str(path)), mode=io.ImageReadMode.RGB),
                               on_tensors)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lockstep")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        paths = write_images(pathlib.Path(folder) / "images")
        size = sum(path.stat().st_size for path in paths) / len(paths) / 1e3
        job = pathlib.Path(folder) / "job.pbtxt"
        job.write_text(JOB.format(batch=BATCH, folder=pathlib.Path(folder) / "images"))
        rounds = [{"lockstep": ours(arguments.lockstep, job),
                   **{name: theirs(paths, *peer) for name, peer in peers().items()}} for _ in range(arguments.rounds)]
    if arguments.json:
        print(json.dumps(rounds))
        return
    print(f"{len(paths)} images of {size:.0f} KB")
    for name in rounds[0]:
        rate = statistics.median(each[name] for each in rounds)
        ratio = statistics.median(each["lockstep"] / each[name] for each in rounds)
        print(f"{name:20} {rate:6.0f} images/s and core, lockstep {ratio:.2f} times as fast")


if __name__ == "__main__":
    main()
