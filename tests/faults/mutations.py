# SPDX-License-Identifier: Apache-2.0
"""Files that somebody has written wrongly, at random or with intent: an error by name, never a crash, a hang or much
memory. What only tells of a run is no reason to train otherwise."""
import json
import random
import resource
import shutil

import checksums
from flips import Flips
from training import DOCUMENTED, JOB, Result, STEPS

PIECES = (b"{", b"}", b"[", b"]", b'"', b",", b":", b"-1", b"1e9", b"null", b"18446744073709551615", b"\xff\xff\xff\xff",
          b"9223372036854775807", b"\\u0000", b"\x00" * 8, b'"shape"', b'"F64"', b"mlp{", b"hidden: ", b"(.*)*x$", b"'")
SECONDS = 10
BYTES = 1 << 30
ADDRESS_SPACE = 8 << 30  # that a machine of others is not taken down by a failure of this test


def mutate(content, chance):
    """One to three changes of the kinds that parsers stumble over."""
    content = bytearray(content)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(content) + 1)
        length = chance.randrange(min(len(content) - at, 24) + 1)
        how = chance.randrange(5)
        if how == 0 and at < len(content):
            content[at] ^= 1 << chance.randrange(8)
        elif how == 1:
            del content[at:at + length]
        elif how == 2:
            begin = chance.randrange(len(content) + 1)
            content[at:at] = content[begin:begin + length]
        else:
            content[at:at + (length if how == 3 else 0)] = chance.choice(PIECES)
    return bytes(content)


class Mutations:
    name = "mutations"
    promises = "R20 R25 R26"
    quick = 400
    whole = 2000
    endless = True

    KINDS = ("job", "data", "state", "tensors", "manifest", "header", "records", "inspect")

    def __init__(self):
        self.flips = Flips()

    def tries(self, _, chance):
        """"KIND SEED" """
        while True:
            for kind in self.KINDS:
                yield f"{kind} {chance.randrange(1 << 32)}"

    def run(self, shop, key):
        kind, seed = key.split(" ")
        shop.digest(1)
        return getattr(self, "_" + kind)(shop, random.Random(int(seed)))

    def end(self, shop, command, allowed=DOCUMENTED):
        """Problems of a command that is given something wrong."""
        ended = shop.start(command, limits=[(resource.RLIMIT_AS, ADDRESS_SPACE)]).finish(SECONDS * shop.patience)
        yield from ended.problems()
        if ended.code not in allowed:
            yield f"exit {ended.code}\n{ended.told()}"
        if ended.peak_bytes > BYTES:
            yield f"it took {ended.peak_bytes >> 20} MiB"

    def _job(self, shop, chance):
        shop.clear()
        job = shop.folder / "mutated.pbtxt"
        job.write_bytes(mutate(JOB.encode(), chance))
        return Result.of(list(self.end(shop, [shop.lockstep, "validate", job])))

    def _data(self, shop, chance):
        shop.clear()
        folder = shop.folder / "data"
        folder.mkdir(exist_ok=True)
        shop.write_data(folder)
        path = folder / chance.choice(("images", "labels"))
        content = path.read_bytes()
        cut = chance.choice((16, len(content)))  # the header, or all
        path.write_bytes(mutate(content[:cut], chance) + content[cut:])
        job = folder / "job.pbtxt"
        job.write_text(JOB)
        return Result.of(list(self.end(shop, [shop.lockstep, "train", job, "--run-dir", shop.run_dir])))

    def _resume(self, shop, command=None, allowed=DOCUMENTED):
        return Result.of(list(self.end(shop, command or shop.train_command(), allowed)))

    def _state(self, shop, chance):
        newest = self.flips.prepare(shop)
        path = newest / "state.pb"
        path.write_bytes(mutate(path.read_bytes(), chance))
        checksums.seal(newest)
        # The step is far away where its bytes were changed: what is asked for here is a start, not a training.
        return self._resume(shop, shop.train_command(settings=(f"train.steps={STEPS + 1}",)))

    def _tensors(self, shop, chance):
        newest = self.flips.prepare(shop)
        path = newest / "tensors.safetensors"
        path.write_bytes(mutate(path.read_bytes(), chance))
        checksums.seal(newest)
        return self._resume(shop)

    def _header(self, shop, chance):
        """safetensors' header alone, with a length that fits."""
        newest = self.flips.prepare(shop)
        path = newest / "tensors.safetensors"
        content = path.read_bytes()
        size = int.from_bytes(content[:8], "little")
        header = mutate(content[8:8 + size], chance)
        path.write_bytes(len(header).to_bytes(8, "little") + header + content[8 + size:])
        checksums.seal(newest)
        return self._resume(shop)

    def _manifest(self, shop, chance):
        path = self.flips.prepare(shop) / "manifest.json"
        content = path.read_bytes()
        path.write_bytes(checksums.sealed(mutate(content[:content.rfind(checksums.FIELD)], chance)))
        return self._resume(shop)

    def _inspect(self, shop, chance):
        newest = self.flips.prepare(shop)
        path = newest / chance.choice(("manifest.json", "state.pb", "tensors.safetensors"))
        path.write_bytes(mutate(path.read_bytes(), chance))
        if chance.random() < 0.5 and path.name != "manifest.json":
            checksums.seal(newest)
        return self._resume(shop, [shop.lockstep, "inspect", newest])

    def _records(self, shop, chance):
        """What tells of the run: with a wrong one it goes on, to the same bits."""
        newest = self.flips.prepare(shop)
        records = [path for path in shop.run_dir.iterdir() if path.is_file()]
        path = chance.choice(sorted(records))
        path.write_bytes(mutate(path.read_bytes(), chance))
        shutil.rmtree(newest)
        return Result.of([problem for problem in shop.goes_on(floor=2) if "metrics.jsonl has" not in problem])
