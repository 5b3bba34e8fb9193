# SPDX-License-Identifier: Apache-2.0
"""Faults on the files of best/, where the best weights are kept: kills and failures of each call, and every bit of what
was saved. The run goes on to the same bits and the same best weights; damage to these is named, and never ends a run."""
import shutil

from errors import Errors
from flips import FILES, Flips
from kills import Kills
from training import Result


class Best:
    name = "best"
    promises = "R1 R3 R4"
    quick = 60
    endless = False

    def __init__(self):
        self.calls = {"kills": Kills(), "errors": Errors()}
        self.flips = Flips()

    def tries(self, shop, chance):
        """"ITEM KEY" of the tries of other items on calls below best/, and of this one's own: "REST FILE HOW NUMBER" with
        what is left of the run: "whole", or "cut" where its newest checkpoint is gone."""
        for name, item in self.calls.items():
            yield from (f"{name} {key}" for key in item.tries(shop, chance) if " run/best" in key)
        for key in self.flips.tries_at(self.prepare(shop, "whole")):
            yield from (f"{rest} {key}" for rest in ("whole", "cut"))

    def prepare(self, shop, rest):
        newest = self.flips.prepare(shop)
        if rest == "cut":
            shutil.rmtree(newest)
        return max((shop.run_dir / "best").glob("step-????????"))

    def run(self, shop, key):
        item, key = key.split(" ", 1)
        if item in self.calls:
            return self.calls[item].run(shop, key)
        name, how, number = key.split(" ")
        best = self.prepare(shop, item)
        self.flips.damage(best / name, how, int(number))
        problems = list(self.read_alone(shop, best))
        # A run that is over has only its last weights left to evaluate.
        problems += shop.goes_on(floor=2, best=item == "cut")
        output = shop.folder.joinpath("log").read_text()
        if item == "whole" and "the best weights are lost" not in output:
            problems.append(f"the damage is not named:\n{output}")
        return Result.of(problems)

    @staticmethod
    def read_alone(shop, best):
        """Problems of an evaluation of the damaged weights, which there are no others for."""
        ended = shop.start([shop.lockstep, "eval", shop.job, "--checkpoint", best.parent]).finish(60 * shop.patience)
        yield from ended.problems()
        if ended.code != 4 or best.name not in ended.output:
            yield f"lost: damaged weights are evaluated, or not named: exit {ended.code}\n{ended.told()}"
