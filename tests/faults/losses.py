# SPDX-License-Identifier: Apache-2.0
"""Ranks, the launcher or mpirun killed, stopped or asked to end at random instants: the run ends in time with the exit
code that says so, or goes on; nothing of it stays; run again, it reaches the same bits."""
import random
import signal
import time

from training import MISSED, Result, variables

STEPS = 40
SETTINGS = (f"train.steps={STEPS}", "checkpoint.keep=2")
TIMEOUT = 5  # seconds, comm.timeout_s
SLACK = 3
START_UP = 30  # what a start may take at least before it counts as hung
WHOM = ("rank0", "rank1", "ranks", "mpirun", "launcher", "all")
HOW = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "ask": signal.SIGTERM}
# From the first to the last that a try waits for, besides a moment after it.
PHASES = ("start", "mpi", "ranks", "training", "saved")


class Losses:
    name = "losses"
    promises = "R9 R10 R21 R24"
    quick = 14
    whole = 300
    endless = True

    def tries(self, _, chance):
        """"HOW WHOM PHASE MILLISECONDS RESTARTS": so long after the phase has begun."""
        while True:
            how = chance.choices(tuple(HOW), (6, 2, 2))[0]
            whom = "launcher" if how == "ask" else chance.choice(WHOM)
            if how == "stop" and whom == "all":
                continue
            phase = chance.choice(PHASES)
            milliseconds = chance.choice((0, chance.randrange(20), chance.randrange(150)))
            restarts = int(how == "kill" and whom in ("rank0", "rank1", "ranks", "mpirun") and chance.random() < 0.3)
            yield f"{how} {whom} {phase} {milliseconds} {restarts}"

    @staticmethod
    def found(live):
        """Process ids by name, of those that are there by now."""
        found = {"launcher": [live.process.pid]}
        for pid in live.processes():
            rank = variables(pid).get("OMPI_COMM_WORLD_RANK")
            if rank is not None:
                found.setdefault(f"rank{rank}", []).append(pid)
                found.setdefault("ranks", []).append(pid)
            elif live.is_named(pid, "mpirun", "orterun", "prterun"):
                found.setdefault("mpirun", []).append(pid)
        found["all"] = [*found.get("mpirun", []), *found["launcher"], *found.get("ranks", [])]
        return found

    def wait_for(self, live, shop, phase, whom):
        """Whether the run came there, and whoever is to be hit is there."""
        end = time.monotonic() + 20 * shop.patience
        while time.monotonic() < end and not live.over():
            found = self.found(live)
            here = {"start": True, "mpi": "mpirun" in found, "ranks": len(found.get("ranks", [])) == 2,
                    "training": (shop.run_dir / "metrics.jsonl").exists(), "saved": shop.newest_checkpoint() > 0}
            if here[phase] and found.get(whom):
                return found
            time.sleep(0.001)
        return {}

    def limit(self, how, whom, began):
        """Seconds in which the run has to end."""
        if how == "stop" and whom != "launcher":
            return (TIMEOUT if began else START_UP) + SLACK
        return SLACK + 60 if how == "ask" else SLACK + 5

    def run(self, shop, key):
        how, whom, phase, milliseconds, restarts = key.split(" ")
        shop.digest(2, SETTINGS)
        shop.clear()
        settings = (*SETTINGS, f"comm.timeout_s={TIMEOUT}")
        options = ("--max-restarts", "1") if restarts == "1" else ()
        live = shop.start(shop.train_command(2, settings, options), shim=True)
        found = self.wait_for(live, shop, phase, whom)
        time.sleep(int(milliseconds) / 1000)
        began = phase in ("training", "saved") or (shop.run_dir / "metrics.jsonl").exists()
        for pid in found.get(whom, []):
            live.signal(pid, HOW[how])
        hit = time.monotonic()
        if how == "stop" and whom == "launcher":
            # Ranks train on without it; it goes on where it was.
            time.sleep(1)
            for pid in found.get(whom, []):
                live.signal(pid, signal.SIGCONT)
        limit = self.limit(how, whom, began)
        before_hit = hit - live.begin
        # Exit and restart of a killed run need their time on a busy machine, which is no part of the promise.
        ended = live.finish(before_hit + (limit + (60 if restarts == "1" or how != "stop" else 0)) * shop.patience)
        problems = list(ended.problems())
        if not found and not problems:
            return Result(MISSED)
        took = ended.seconds - before_hit
        at_once = restarts == "0" and (how == "kill" or (how == "stop" and whom != "launcher"))
        if at_once and ended.code != 0 and took > limit * max(1, shop.patience / 2):
            problems.append(f"it took {took:.1f} s to notice")
        problems += self.wrong_end(how, whom, ended, found, restarts == "1")
        floor = max(ended.saved(), shop.newest_checkpoint())
        problems += list(shop.goes_on(2, floor, SETTINGS))
        return Result.of(problems)

    @staticmethod
    def wrong_end(how, whom, ended, found, restarted):
        """Problems of the exit code."""
        own_signal = {"kill": -9, "ask": -15}.get(how)
        allowed = {0}  # it was done before
        if whom in ("launcher", "all") and how != "stop":
            allowed |= {own_signal, 75} if how == "ask" else {own_signal}
        elif how != "ask" and whom != "launcher":
            allowed |= {7}
        if restarted and ended.code == 7:
            yield f"exit 7 in spite of a restart\n{ended.told()}"
        if ended.code not in allowed:
            yield f"exit {ended.code}, not {sorted(allowed)}\n{ended.told()}"
        elif ended.code == 7 and not any(who in ended.output for who in ("rank", "mpirun")):
            yield f"nobody is named\n{ended.told()}"
