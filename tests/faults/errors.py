# SPDX-License-Identifier: Apache-2.0
"""A failure of every file call: the run goes on, or ends with exit 4 and names the file; run again, it goes on."""
import errno

from file_calls import injected, points
from kills import ROLES
from starts import STARTS
from training import MISSED, Result

READS = ("open", "read", "list", "stat")
CHANGES = ("write", "sync", "truncate", "rename", "mkdir", "unlink", "rmdir")
INTERRUPTIBLE = ("open", "read", "write", "sync", "truncate", "lock", "close")
# Files that tell of a run and that training does not need: their failure never ends it.
RECORDS = ("metrics.jsonl", "events.out.tfevents.", "summary.json", "run/job.pbtxt")


def faults_of(operation):
    """(errno or "short", how long it lasts)"""
    yield errno.EIO, "1"
    if operation != "lock":
        yield errno.EIO, "9"  # more often than anything is tried again
    if operation in INTERRUPTIBLE:
        yield errno.EINTR, "1"
    if operation in ("read", "write"):
        yield "short", "1"
    if operation in ("open", "stat"):
        for number in (errno.EACCES, errno.ESTALE, errno.ELOOP):
            yield number, "9"
    if operation in ("write", "sync", "truncate", "rename", "mkdir"):
        yield errno.ENOSPC, "1"
        yield errno.ENOSPC, "writing"
    if operation in CHANGES:
        yield errno.EIO, "all"


def is_record(path):
    return any(name in path for name in RECORDS)


class Errors:
    name = "errors"
    promises = "R3"
    quick = 120
    endless = False

    def tries(self, shop, _):
        """"RANKS START FAULT LASTS POINT" of every call and every failure that it may meet."""
        shop.digest(1)
        for start, prepare in STARTS.items():
            for point in points(shop, 1, lambda: prepare(shop), ROLES[1]):
                for fault, lasts in faults_of(point.split(" ")[1]):
                    yield f"1 {start} {fault} {lasts} {point}"

    def run(self, shop, key):
        ranks, start, fault, lasts, point = key.split(" ", 4)
        ranks = int(ranks)
        shop.digest(ranks)
        STARTS[start](shop)
        ended = shop.train(ranks, {"LOCKSTEP_FAULTS_POINT": point, "LOCKSTEP_FAULTS_FAULT": fault,
                                   "LOCKSTEP_FAULTS_LASTS": lasts}, shim=True)
        call = injected(shop)
        if not call:
            return Result(MISSED)
        problems = list(ended.problems())
        if ended.code not in (0, 4):
            problems.append(f"exit {ended.code}\n{ended.told()}")
        elif ended.code == 4 and str(shop.scene) not in ended.output.split("error (")[-1]:
            problems.append(f"exit 4 without a file's name\n{ended.told()}")
        elif ended.code == 4 and fault in ("short", str(errno.EINTR)) and not is_record(call.path):
            problems.append(f"exit 4 for what has to be done again\n{ended.told()}")
        elif ended.code == 0 and shop.digest_of_run() not in (shop.digest_kept(ranks, ()), None):
            problems.append("lost: the weights differ")
        ends_training = ended.code == 4 and lasts.isdecimal() and is_record(call.path)
        if ends_training:
            problems.append(f"{call.path} ends the training\n{ended.told()}")
        damaged = start == "interrupted"
        floor = max(ended.saved(), 2 if damaged else 0)
        problems += shop.goes_on(ranks, floor)
        return Result.of(problems)
