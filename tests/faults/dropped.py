# SPDX-License-Identifier: Apache-2.0
"""A power cut after any file call: what was not synced is lost, in part or out of order. A save that was reported is
never lost, nor are the metrics of the steps before it, and the run goes on to the same bits."""
import random
import re

from disk import CONTENTS, Disk, put
from file_calls import read_journal
from starts import fresh
from training import Result


class Dropped:
    """On one rank or on two, which the launcher starts."""
    promises = "R2"
    endless = False
    SHUFFLES = 6  # a power cut: so many random choices of what has reached the disk

    def __init__(self, name, ranks, quick):
        self.name = name
        self.ranks = ranks
        self.quick = quick
        self.calls = []
        self.begin = 0  # of the calls of the training that the power cut meets

    def record(self, shop):
        if not self.calls:
            shop.digest(self.ranks)
            fresh(shop)
            self.train(shop)
            self.calls = read_journal(shop.journal)
            shop.journal.unlink()

    def train(self, shop, **how):
        ended = shop.train(self.ranks, shim=True, **how)
        if ended.code != 0:
            raise RuntimeError(f"the training fails under the shim (exit {ended.code}):\n{ended.told()}")

    def tries(self, shop, _):
        """"CALLS CONTENTS NAMES": after so many calls; what is left of unsynced contents; which unsynced names are there
        (all, none, only the nth, all but the nth, or drawn by chance with a seed). States that are equal count once."""
        self.record(shop)
        disk, seen = Disk(), set()
        for count, call in enumerate(self.calls, start=1):
            disk.apply(call)
            if count <= self.begin:
                continue
            said = self.said(count)
            for contents in CONTENTS if disk.has_unsynced_content() else CONTENTS[:1]:
                for names in self.choices(len(disk.changes())):
                    tree = disk.state(contents, self.chosen(names, count, len(disk.changes())))
                    state = hash((said, tuple(tree.items())))
                    if state not in seen:
                        seen.add(state)
                        yield f"{count} {contents} {names}"

    def choices(self, changes):
        yield "all"
        if changes:
            yield "none"
        if changes > 1:
            for i in range(changes):
                yield f"only-{i}"
                yield f"without-{i}"
        if changes > 2:
            for seed in range(self.SHUFFLES):
                yield f"chance-{seed}"

    @staticmethod
    def chosen(names, count, changes):
        how, _, number = names.partition("-")
        if how == "chance":
            chance = random.Random(f"{count} {number}")
            return [chance.random() < 0.5 for _ in range(changes)]
        return [{"all": True, "none": False, "only": str(i) == number, "without": str(i) != number}[how]
                for i in range(changes)]

    def said(self, count):
        """The newest step that was reported as saved by then."""
        words = b"".join(call.data for call in self.calls[self.begin:count] if (call.role, call.operation) == ("main", "say"))
        return max((int(step) for step in re.findall(rb"saved at step (\d+) in", words)), default=0)

    def run(self, shop, key):
        self.record(shop)
        count, contents, names = key.split(" ")
        disk = Disk()
        for call in self.calls[:int(count)]:
            disk.apply(call)
        put(disk.state(contents, self.chosen(names, int(count), len(disk.changes()))), shop.scene)
        problems = list(self.missing(shop))
        return Result.of(problems + list(shop.goes_on(self.ranks, floor=self.said(int(count)), metrics=True)))

    def missing(self, shop):
        """What has to be there before the run goes on."""
        return ()


class Moved(Dropped):
    """While a run that was done trains again from an earlier checkpoint, and moves the later one away."""

    def train(self, shop):
        super().train(shop, settings=("checkpoint.keep=0",))
        self.begin = len(read_journal(shop.journal))
        super().train(shop, options=("--resume", shop.run_dir / "checkpoints" / "step-00000002"))

    def said(self, count):
        return max(2, super().said(count))

    def missing(self, shop):
        if not any(shop.run_dir.glob("**/checkpoints/step-00000004/manifest.json")):
            yield "lost: the checkpoint of step 4, in both places"
