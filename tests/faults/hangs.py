# SPDX-License-Identifier: Apache-2.0
"""A file call that never returns: the run ends in time with exit 4 and names the call, the file and the step, or, where
the file only tells of the run and no save waits for it any more, without. Run again, it reaches the same bits."""
import json
import re

from errors import is_record
from file_calls import injected, points
from kills import ROLES
from starts import STARTS
from training import HAS_MPI, MISSED, Result

# Those that wait for the disk.
WAITING = ("open", "list", "write", "sync", "truncate", "lock", "rename", "mkdir", "unlink", "rmdir")
STALL_TIMEOUTS = 30  # launcher/commands/command_train.cpp
# Seconds, comm.timeout_s. Ranks that wait for rank 0's disk have to hear from it within that time.
TIMEOUTS = {1: 0.05, 2: 1}
SLACK = 3
LAST_WORDS = 5  # seconds that a run may take to record its end on a disk that hangs


class Hangs:
    name = "hangs"
    promises = "R3 R10"
    quick = 4
    endless = False

    def tries(self, shop, _):
        """"RANKS LASTS POINT" of every call that waits for the disk; LASTS "all": the whole disk hangs from then on."""
        for ranks in (1, 2) if HAS_MPI else (1,):
            shop.digest(ranks)
            for point in points(shop, ranks, lambda: STARTS["fresh"](shop), ROLES[ranks]):
                operation = point.split(" ")[1]
                if operation not in WAITING or " sync " not in point and ranks > 1:
                    continue
                yield from (f"{ranks} {lasts} {point}" for lasts in ("1", "all"))

    def run(self, shop, key):
        ranks, lasts, point = key.split(" ", 2)
        ranks = int(ranks)
        shop.digest(ranks)
        STARTS["fresh"](shop)
        live = shop.start(shop.train_command(ranks, (f"comm.timeout_s={TIMEOUTS[ranks]}",)),
                          {"LOCKSTEP_FAULTS_POINT": point, "LOCKSTEP_FAULTS_FAULT": "hang",
                           "LOCKSTEP_FAULTS_LASTS": lasts}, shim=True)
        stall = STALL_TIMEOUTS * TIMEOUTS[ranks]
        ended = live.finish(stall + (SLACK + LAST_WORDS + 5) * shop.patience)
        call = injected(shop)
        if not call:
            return Result(MISSED)
        problems = list(ended.problems())
        if not ended.hung:
            problems += self.wrong_end(shop, ended, call)
        problems += shop.goes_on(ranks, max(ended.saved(), shop.newest_checkpoint()))
        return Result.of(problems)

    @staticmethod
    def wrong_end(shop, ended, call):
        # Who writes summary.json opens the run directory and locks it.
        records = is_record(call.path) or (call.path == shop.run_dir.name
                                           and "summary.json is not written" in ended.output)
        allowed = (0, 4) if records else (4,)
        if ended.code not in allowed:
            yield f"exit {ended.code}\n{ended.told()}"
        if ended.code != 4:
            return
        error = ended.output.split("error (")[-1]
        # Small files are written, synced and renamed as one.
        whole = not any(folder in call.path for folder in ("/checkpoints", "/best"))
        # The launcher makes the run directory, whose name is the scene's to keep.
        named = call.path if not whole else str(shop.scene if call.path == "." else shop.run_dir)
        if named not in error or (call.operation == "sync" and not whole and "fsync" not in error):
            yield f"call or file is not named\n{ended.told()}"
        place = re.search(r", (during start-up|in step (\d+)): the system has not answered", error)
        step = int(place[2] or 0) if place else None
        if step is None or (step == 0 and "step-" in call.path):
            yield f"the step is not named\n{ended.told()}"
        try:
            recorded = json.loads((shop.run_dir / "summary.json").read_text())["step"]
        except (OSError, ValueError, KeyError):
            return  # that of a disk which hangs as a whole
        if step != recorded:
            yield f"summary.json says step {recorded}\n{ended.told()}"
