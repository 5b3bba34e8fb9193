# SPDX-License-Identifier: Apache-2.0
"""Links cut and hosts without power, on a cluster of this machine: ranks that can end with exit 7 in time and name who is
lost; run again on whole links, the training reaches the bits of one that nothing happened to."""
import os
import sys
from pathlib import Path

from training import MISSED, Result

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cluster"))
from cluster import Cluster, missing  # noqa: E402
from trainings import Training, unreachable  # noqa: E402

TIMEOUT = 5  # seconds, comm.timeout_s
SLACK = 10
STEPS = 1000
SETTINGS = (f"train.steps={STEPS}", "schedule=unset", "train.eval_every=0", "checkpoint.every_steps=20")
FAULTS = ("cut", "out", "in", "power")


class Machines:
    name = "cluster"
    promises = "R9 R10"
    quick = 1
    endless = False

    @staticmethod
    def unavailable(shop):
        """Why this machine cannot have it; empty where it can."""
        return missing() or unreachable(shop.lockstep)

    def tries(self, _, chance):
        """"FAULT HOST HOSTS RANKS": of one host of so many with so many ranks each. The first one's power takes the
        run's own record away: there are no other's words to check."""
        for hosts in (2, 3):
            for ranks in (1, 2):
                for fault in FAULTS:
                    for host in "abc"[:hosts]:
                        if (fault, host) != ("power", "a"):
                            yield f"{fault} {host} {hosts} {ranks}"

    def run(self, shop, key):
        fault, host, count, ranks = key.split(" ")
        hosts = "abc"[:int(count)]
        cluster = Cluster(f"faults-{os.getpid()}")
        try:
            cluster.up(len(hosts))
            whole = Training(cluster, "variables", hosts, int(ranks), SETTINGS, lockstep=shop.lockstep)
            ended = whole.finish(60 * shop.patience)
            if set(ended.codes) != {0}:
                return Result.of([f"undisturbed: {ended}"])
            return self.injure(cluster, shop, fault, host, hosts, int(ranks), whole.digest())
        finally:
            cluster.down()

    def injure(self, cluster, shop, fault, host, hosts, ranks, digest):
        training = Training(cluster, "variables", hosts, ranks, (*SETTINGS, f"comm.timeout_s={TIMEOUT}"),
                            lockstep=shop.lockstep)
        if not training.wait_for_step(30, 60 * shop.patience):
            training.finish(60 * shop.patience)
            return Result(MISSED, "it ended first")
        if fault == "power":
            cluster.power(host, False)
        else:
            cluster.link(host, ["out", "in"] if fault == "cut" else [fault], cut=True)
        ended = training.finish((2 * TIMEOUT + SLACK) * shop.patience)
        if set(ended.codes) == {0}:
            return Result(MISSED, "it ended first")
        lost = hosts.index(host)
        problems = self.problems(ended, [code for place, code in enumerate(ended.codes)
                                         if fault != "power" or place // ranks != lost], host, hosts)
        if fault == "power":
            cluster.power(host, True)
        else:
            cluster.link(host, cut=False)
        again = Training(cluster, "variables", hosts, ranks, SETTINGS, fresh=False, lockstep=shop.lockstep)
        ended = again.finish(60 * shop.patience)
        if set(ended.codes) != {0}:
            problems.append(f"run again, {ended}")
        elif again.digest() != digest:
            problems.append(f"lost: the weights differ: {again.digest()}, not {digest}")
        return Result.of(problems)

    @staticmethod
    def problems(ended, codes, host, hosts):
        found = [] if set(codes) == {7} else [f"exit {codes}, not 7: {ended}"]
        # Where rank 0's own host is lost, all others miss it.
        told = ended.texts[-1] if host == hosts[0] else ended.texts[0]
        if f" on {host})" not in told:
            found.append(f"host {host} is not named: {ended}")
        return found
