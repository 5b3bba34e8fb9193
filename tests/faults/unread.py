# SPDX-License-Identifier: Apache-2.0
"""A stdout that nobody reads: training goes on, SIGTERM ends it in time, and what was not taken is counted."""
import fcntl
import os
import re
import signal
import time

from losses import SLACK, TIMEOUT
from training import HAS_MPI, Result

STEPS = 1500
GOES_ON = 500  # lines in metrics.jsonl that show it: far more than what fits into a pipe
SETTINGS = (f"train.steps={STEPS}", "model.mlp.hidden=[600, 600]", "train.eval_every=500", "train.log_every=1", "checkpoint.every_steps=500",
            f"comm.timeout_s={TIMEOUT}")
SMALL_PIPE = 4096


class Unread:
    name = "unread"
    promises = "R21"
    quick = 4
    whole = 40
    endless = True

    def tries(self, _, chance):
        """"RANKS OUTPUT END MILLISECONDS": what is printed, and whether the run is asked to end, so long after it was seen
        to go on, or let be."""
        while True:
            for output in ("lines", "json"):
                for end in ("asked", "alone"):
                    yield f"{2 if HAS_MPI else 1} {output} {end} {chance.randrange(300)}"
                    yield f"1 {output} {end} {chance.randrange(300)}"

    def run(self, shop, key):
        ranks, output, end, milliseconds = key.split(" ")
        ranks = int(ranks)
        shop.digest(ranks, SETTINGS)
        shop.clear()
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, SMALL_PIPE)
        command = shop.train_command(ranks, SETTINGS, ["--json"] if output == "json" else [])
        live = shop.start(command, stdout=writer)
        os.close(writer)
        problems = []
        if not self.goes_on(live, shop):
            problems.append(f"training does not go on: {self.lines(shop)} lines in metrics.jsonl")
        if end == "asked":
            time.sleep(int(milliseconds) / 1000)
            live.signal(live.process.pid, signal.SIGTERM)
        limit = TIMEOUT + SLACK if end == "asked" else 60
        ended = live.finish(time.monotonic() - live.begin + limit * shop.patience)
        with open(reader, "rb") as pipe:
            taken = pipe.read().count(b"\n")
        problems += ended.problems()
        if ended.code not in ((0, 75) if end == "asked" else (0,)):
            problems.append(f"exit {ended.code}\n{ended.told()}")
        dropped = re.findall(r"(\d+) lines of output were dropped", ended.output)
        if not dropped:
            problems.append(f"what was dropped is not counted\n{ended.told()}")
        elif output == "json" and taken + int(dropped[-1]) != self.lines(shop):
            problems.append(f"{taken} lines taken and {dropped[-1]} dropped, of {self.lines(shop)}")
        problems += shop.goes_on(ranks, shop.newest_checkpoint(), SETTINGS, metrics=True)
        return Result.of(problems)

    @staticmethod
    def lines(shop):
        try:
            return (shop.run_dir / "metrics.jsonl").read_bytes().count(b"\n")
        except OSError:
            return 0

    def goes_on(self, live, shop):
        end = time.monotonic() + 20 * shop.patience
        while time.monotonic() < end and not live.over():
            if self.lines(shop) > GOES_ON:
                return True
            time.sleep(0.01)
        return self.lines(shop) > GOES_ON
