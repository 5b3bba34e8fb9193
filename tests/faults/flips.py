# SPDX-License-Identifier: Apache-2.0
"""One flipped bit, or a file cut short, in the newest checkpoint: it is named, and the one before is taken."""
import os
import shutil

from training import Result

FILES = ("manifest.json", "state.pb", "tensors.safetensors")


class Flips:
    name = "flips"
    promises = "R4"
    quick = 400
    endless = False

    def prepare(self, shop):
        """A finished run with checkpoints of step 2 and 4."""
        kept = shop.folder / "finished"
        if not kept.exists():
            shop.digest(1)
            shop.clear()
            shop.train(settings=("checkpoint.keep=0",))
            shutil.copytree(shop.run_dir, kept)
        shop.clear()
        shutil.copytree(kept, shop.run_dir)
        return shop.run_dir / "checkpoints" / "step-00000004"

    def tries(self, shop, _):
        """"FILE HOW NUMBER": every bit, every length, and other things in a file's place."""
        yield from self.tries_at(self.prepare(shop))
        yield from (f"both bit {number}" for number in range(20))

    @staticmethod
    def tries_at(checkpoint):
        """Those of the files of one checkpoint."""
        for name in FILES:
            size = checkpoint.joinpath(name).stat().st_size
            yield from (f"{name} length {length}" for length in (*range(size), size + 1))
            yield from (f"{name} bit {bit}" for bit in range(8 * size))
            yield from (f"{name} {how} 0" for how in ("missing", "folder", "fifo", "loop", "zeros"))

    @staticmethod
    def flip(path, bit):
        content = bytearray(path.read_bytes())
        content[bit // 8 % len(content)] ^= 1 << bit % 8
        path.write_bytes(content)

    def damage(self, path, how, number):
        if how == "bit":
            return self.flip(path, number)
        content = path.read_bytes()
        if how == "length":
            return path.write_bytes(content.ljust(number, b"\0")[:number])
        if how == "zeros":
            return path.write_bytes(bytes(len(content)))
        path.unlink()
        if how == "folder":
            path.mkdir()
        elif how == "fifo":
            os.mkfifo(path)
        elif how == "loop":
            path.symlink_to(path.name)

    def run(self, shop, key):
        name, how, number = key.split(" ")
        newest = self.prepare(shop)
        if name == "both":
            return self.run_both(shop, newest, int(number))
        self.damage(newest / name, how, int(number))
        problems = list(shop.goes_on(floor=2))
        output = shop.folder.joinpath("log").read_text()
        if "step-00000004" not in output.split("resuming from")[0] or "step-00000002 is taken instead" not in output:
            problems.append(f"lost: the damage is not named:\n{output}")
        return Result.of(problems)

    def run_both(self, shop, newest, number):
        """No whole one is left: exit 4, and each is named."""
        for checkpoint in (newest, newest.with_name("step-00000002")):
            self.flip(checkpoint / FILES[number % 3], 977 * number)
        ended = shop.train()
        problems = list(ended.problems())
        if ended.code != 4 or "step-00000004" not in ended.output or "step-00000002" not in ended.output:
            problems.append(f"lost: exit {ended.code}\n{ended.told()}")
        return Result.of(problems)
