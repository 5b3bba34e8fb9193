# SPDX-License-Identifier: Apache-2.0
"""The campaign itself, asked to end at any instant: it prints its table, and nothing of it stays, neither a process nor
its scratch folder."""
import signal
import sys
import time
from pathlib import Path

from training import Result

SIGNALS = ("TERM", "INT", "HUP")
ITEMS = ("kills", "flips", "losses", "power cuts")
LIMIT = 10  # seconds


class Drivers:
    name = "drivers"
    promises = "R24"
    quick = 3
    whole = 30
    endless = True

    def tries(self, _, chance):
        """"SIGNAL TIMES MILLISECONDS ITEM" """
        while True:
            for name in SIGNALS:
                yield f"{name} {chance.choice((1, 3))} {chance.randrange(300, 3000)} {chance.choice(ITEMS)}"

    def run(self, shop, key):
        name, times, milliseconds, item = key.split(" ", 3)
        shop.clear()
        campaign = Path(__file__).with_name("campaign.py")
        live = shop.start([sys.executable, "-B", campaign, "--bin", shop.lockstep.parent, "--scratch", shop.scene,
                           "--seconds", 600, "--only", item])
        time.sleep(int(milliseconds) / 1000)
        for _ in range(int(times)):
            live.signal(live.process.pid, getattr(signal, "SIG" + name))
        ended = live.finish(int(milliseconds) / 1000 + LIMIT * shop.patience)
        problems = list(ended.problems())
        # A signal that came before the campaign listens is Python's to tell of: it kills, or is a KeyboardInterrupt.
        early = ended.code < 0 or ended.output.rstrip().endswith("KeyboardInterrupt")
        if not early and ("Traceback" in ended.output or "promises" not in ended.output):
            problems.append(f"it ends with a failure of its own (exit {ended.code})\n{ended.told()}")
        if left := sorted(path.name for path in shop.scene.iterdir()):
            problems.append(f"{', '.join(left)} is left\n{ended.told()}")
        return Result.of(problems)
