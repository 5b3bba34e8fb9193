# SPDX-License-Identifier: Apache-2.0
"""A rank that dies, hangs or differs ends the run within seconds and is named; a restart reaches the same bits."""
import json
import unittest

from runs import SAVE_ALWAYS, LiveRun, RunTest, faults, mpirun_of, require_mpi

SETTINGS = ("train.steps=8", *SAVE_ALWAYS)
# Every wait for a peer may last ten minutes; noticing its end takes none of it, however busy the machine is.
PATIENT = "comm.timeout_s=600"
SECONDS = 150


class Lost(RunTest):
    def lose_rank_one(self, fault, named):
        lost = self.train("lost", *SETTINGS, PATIENT, fault, ranks=2, code=7)
        self.assertRegex(lost.output, named)
        self.assertLess(lost.seconds, SECONDS)
        restarted = self.train("restarted", *SETTINGS, fault, ranks=2, options=("--max-restarts", "1"))
        self.assertRegex(restarted.output, named)
        self.assertEqual(restarted.column("step"), list(range(1, 9)))
        self.assertEqual(restarted.digest, self.train("whole", *SETTINGS, ranks=2).digest)

    def kill_in(self, phase, named):
        self.lose_rank_one(faults("kill", f"step:3 rank:1 phase:{phase}"), f"rank 1.*signal 9.*{named}")

    def test_killed_in_start_up(self):
        self.kill_in("INIT", "start-up")

    def test_killed_in_forward(self):
        self.kill_in("FORWARD", "step 3, forward")

    def test_killed_in_backward(self):
        self.kill_in("BACKWARD", "step 3, backward")

    def test_killed_in_all_reduce(self):
        self.kill_in("ALL_REDUCE", "step 3, (backward|all-reduce)")

    def test_killed_in_saving(self):
        self.kill_in("SAVE", "step 3, checkpoint")

    def test_stopped(self):
        # Nothing tells a stopped rank from a slow one but time, which its peer and the launcher take.
        lost = self.train("lost", *SETTINGS, "comm.timeout_s=12", faults("stop", "step:3 rank:1"), ranks=2, code=7)
        self.assertRegex(lost.output, "rank 1.*(did not arrive within 12.0 s|has been stopped for [0-9]+ s)")
        self.assertLess(lost.seconds, SECONDS)
        # What the other one has done before, and that it waits.
        self.assertIn("nothing has begun or ended for 6.0 s in step 3", lost.output)
        events = json.loads((lost.directory / "last_events/rank0.json").read_text(encoding="utf-8"))
        self.assertEqual(events["metadata"]["reason"], "nothing has begun or ended for 6.0 s in step 3")
        steps = [event["args"]["step"] for event in events["traceEvents"] if event["name"] == "step"]
        self.assertEqual(steps, [1, 2, 3])
        open_ones = {event["name"]: event["cat"] for event in events["traceEvents"] if event["ph"] == "B"}
        self.assertEqual(open_ones["step"], "step")
        self.assertIn("communication", open_ones.values())

    def test_slow_is_not_lost(self):
        slow = faults("delay", "step:2 rank:1 milliseconds:1500 phase:FORWARD",
                      "delay", "step:3 rank:0 milliseconds:1500 phase:SAVE")
        run = self.train("slow", *SETTINGS, slow, ranks=2)
        self.assertEqual(run.digest, self.train("whole", *SETTINGS, ranks=2).digest)


class Different(RunTest):
    def mpirun(self, first, second):
        """A rank of each command."""
        require_mpi()
        return LiveRun(mpirun_of(first, second), self.folder / "run").finish()

    def test_a_flipped_bit_of_a_weight_is_found_and_named(self):
        flip = faults("bit_flip", "step:4 rank:1 parameter:'block1_conv.weight'")
        for ranks, who in ((2, "which of them is wrong cannot be told"), (3, "rank 1 differs from ranks 0, 2")):
            run = self.train(f"run-{ranks}", *SETTINGS, "comm.digest_every=2", flip, ranks=ranks, code=7)
            self.assertRegex(run.output, f"block1_conv.weight(.|\n)*{who}")
            self.assertEqual(run.column("step"), [1, 2, 3, 4])

    def test_ranks_with_different_jobs_are_refused(self):
        run = self.mpirun(self.command("run", *SETTINGS), self.command("run", *SETTINGS, "optimizer.sgd.lr=0.2"))
        self.assertEqual(run.code, 7, run.output)
        self.assertRegex(run.output, r"optimizer\.sgd\.lr: 0\.1 / 0\.2")
        self.assertEqual(run.steps, [])

    def test_joining_under_mpirun_is_the_same_run(self):
        command = self.command("run", *SETTINGS)
        joined = self.mpirun(command, command)
        self.assertEqual(joined.code, 0, joined.output)
        self.assertEqual(joined.digest, self.train("whole", *SETTINGS, ranks=2).digest)


if __name__ == "__main__":
    unittest.main()
