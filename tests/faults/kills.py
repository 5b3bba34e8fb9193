# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at every file call, and within every write: the run goes on from its newest checkpoint to the same bits."""
from file_calls import injected, points
from starts import STARTS
from training import HAS_MPI, MISSED, Result

ROLES = {1: ("main",), 2: ("main", "rank0", "rank1")}


class Kills:
    name = "kills"
    promises = "R1 R24"
    quick = 100
    endless = False

    def tries(self, shop, _):
        """"RANKS START FAULT POINT" of every call."""
        for start, prepare in STARTS.items():
            shop.digest(1)
            for point in points(shop, 1, lambda: prepare(shop), ROLES[1]):
                yield f"1 {start} kill {point}"
                if " write " in point:
                    yield f"1 {start} torn {point}"
        if not HAS_MPI:
            return
        shop.digest(2)
        for point in points(shop, 2, lambda: STARTS["fresh"](shop), ROLES[2]):
            if not any(f" {harmless} " in point for harmless in ("stat", "list", "read")):
                yield f"2 fresh kill {point}"

    def run(self, shop, key):
        ranks, start, fault, point = key.split(" ", 3)
        ranks = int(ranks)
        shop.digest(ranks)
        STARTS[start](shop)
        ended = shop.train(ranks, {"LOCKSTEP_FAULTS_POINT": point, "LOCKSTEP_FAULTS_FAULT": fault}, shim=True)
        call = injected(shop)
        if not call:
            return Result(MISSED)
        problems = list(ended.problems())
        if call.point != point:
            problems.append(f"was killed at {call.point}")
        # One under its final name is whole: nobody but an attacker of the start damages any.
        floor = max(ended.saved(), 2 if start == "interrupted" else 0)
        newest = shop.newest_checkpoint()
        if start == "fresh" or newest == 2:
            floor = max(floor, newest)
        problems += shop.goes_on(ranks, floor, metrics=True)
        return Result.of(problems)
