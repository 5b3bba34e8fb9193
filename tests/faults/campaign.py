#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Injures short trainings in every way that docs/reliability.md names, and counts what became of them.

Each try is a whole run that gets one fault, and then the same command again, which has to end at the bits of a run that
nothing happened to. What goes wrong is printed with the command line that repeats it. Ends with 1 where anything did.
"""
import argparse
import itertools
import os
import random
import shlex
import signal
import sys
import tempfile
import time
from pathlib import Path

from best import Best
from crowds import Crowds
from drivers import Drivers
from dropped import Dropped, Moved
from errors import Errors
from flips import Flips
from frames import Frames
from hangs import Hangs
from kills import Kills
from losses import Losses
from machines import Machines
from mutations import Mutations
from strangers import Strangers
from training import LOST, MISSED, SURVIVED, WRONG, Workshop, adopt_orphans, end_all_runs
from unread import Unread

ITEMS = (Kills(), Errors(), Hangs(), Dropped("power cuts", 1, quick=150), Dropped("power cuts 2", 2, quick=12),
         Moved("moves", 1, quick=40), Flips(), Best(), Mutations(), Losses(), Unread(), Strangers(), Crowds(), Frames(), Drivers(),
         Machines())
COLUMNS = (SURVIVED, WRONG, LOST)
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_once(*_):
    """Ends the campaign, and is not disturbed while it tidies up."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def evenly(keys, count):
    """So many of them, from the first to the last."""
    return keys if len(keys) <= count else [keys[i * len(keys) // count] for i in range(count)]


class Campaign:
    def __init__(self, options, shop):
        self.options = options
        self.shop = shop
        self.counts = {}
        self.seconds = {}

    def keys_of(self, item):
        """Tries in the order in which they are made."""
        chance = random.Random(self.options.seed)
        tries = item.tries(self.shop, chance)
        if item.endless:
            return tries if self.options.seconds else itertools.islice(tries, self.quick(item))
        keys = list(tries)
        if self.options.quick:
            return evenly(keys, item.quick)
        if self.options.seconds:
            chance.shuffle(keys)
        return keys

    def quick(self, item):
        return item.quick if self.options.quick else item.whole

    def run(self, item, deadline):
        counts = self.counts.setdefault(item.name, dict.fromkeys((*COLUMNS, MISSED), 0))
        begin = time.monotonic()
        try:
            for key in [self.options.one] if self.options.one else self.keys_of(item):
                if deadline and time.monotonic() > deadline:
                    break
                self.count(item, key, counts)
        finally:
            self.seconds[item.name] = time.monotonic() - begin

    def count(self, item, key, counts):
        """Makes a try."""
        result = item.run(self.shop, key)
        counts[result.outcome] += 1
        if result.outcome in (WRONG, LOST):
            print(f"{item.name}: {result.outcome}: {result.text}\n  {self.repeat(item, key)}", flush=True)
        elif self.options.one:
            print(f"{item.name}: {result.outcome} {result.text}")

    def repeat(self, item, key):
        bin_folder = ["--bin", self.options.bin] if self.options.bin else []
        return shlex.join(["scripts/faults", *bin_folder, "--only", item.name, "--try", key])

    def run_all(self):
        items = [item for item in ITEMS if self.options.only in (None, item.name)]
        begin = time.monotonic()
        for number, item in enumerate(items, start=1):
            # An item may need what this machine does not give.
            if hasattr(item, "unavailable") and (reason := item.unavailable(self.shop)):
                print(f"{item.name}: skipped: {reason}", flush=True)
                continue
            share = self.options.seconds and begin + self.options.seconds * number / len(items)
            self.run(item, share)

    def table(self):
        lines = [f"{'item':<14}{'promises':<13}{'tries':>7}" + "".join(f"{name:>10}" for name in (*COLUMNS, MISSED))
                 + f"{'seconds':>10}"]
        for item in ITEMS:
            if item.name not in self.counts:
                continue
            counts = self.counts[item.name]
            numbers = [counts[name] for name in COLUMNS]
            lines.append(f"{item.name:<14}{item.promises:<13}{sum(numbers):>7}"
                         + "".join(f"{number:>10}" for number in (*numbers, counts[MISSED])) + f"{self.seconds[item.name]:>10.0f}")
        return "\n".join(lines)

    def failed(self):
        """Also where an item injected nothing: it has tried nothing."""
        return any(counts[WRONG] + counts[LOST] or not sum(counts[name] for name in COLUMNS)
                   for counts in self.counts.values() if not self.options.seconds or sum(counts.values()))


def main():
    parser = argparse.ArgumentParser(prog="scripts/faults", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, help="how long in all; default: every enumerated try once")
    parser.add_argument("--seed", type=int, default=1, help="of the order and of what is drawn by chance")
    parser.add_argument("--only", choices=[item.name for item in ITEMS], help="one item")
    parser.add_argument("--try", dest="one", metavar="KEY", help="one try of that item, as a failure prints it")
    parser.add_argument("--quick", action="store_true", help="a fixed small part of the tries of each item")
    parser.add_argument("--bin", help="the folder of lockstep and lockstep_faults.so; default: build/release/bin, built")
    parser.add_argument("--patience", type=float, default=3, help="a factor for every limit on time, for a busy machine")
    parser.add_argument("--scratch", help="where the scratch folder is made; default: in memory, where a sync costs nothing")
    parser.add_argument("--out", type=Path, help="a file for the table, beside stdout")
    options = parser.parse_args()
    if options.one and not options.only:
        parser.error("--try needs --only")

    # A request to end prints what was found by then, also where a shell has made its background jobs deaf for Ctrl-C. It
    # waits until there is somebody to tidy up.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    for number in ENDING:
        signal.signal(number, end_once)
    adopt_orphans()
    bin_folder = Path(options.bin or Path(__file__).resolve().parents[2] / "build/release/bin").resolve()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="lockstep-faults-", dir=options.scratch or memory) as folder:
        campaign = Campaign(options, Workshop(bin_folder, Path(folder), options.patience))
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
            campaign.run_all()
        except KeyboardInterrupt:
            pass
        finally:
            end_all_runs()
    print(campaign.table())
    if options.out:
        options.out.write_text(campaign.table() + "\n")
    return 1 if campaign.failed() else 0


if __name__ == "__main__":
    sys.exit(main())
