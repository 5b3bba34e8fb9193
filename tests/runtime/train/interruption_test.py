# SPDX-License-Identifier: Apache-2.0
"""A run that is killed, stopped or asked to stop, at any moment, goes on to the bits of one that never was."""
import random
import shutil
import signal
import time
import unittest

from runs import SAVE_ALWAYS, RunTest, faults

# fp16 with dropout, over the end of an epoch (24 steps), skips on either rank; each step is saved.
STEPS = 72
SETTINGS = (f"train.steps={STEPS}", "schedule.cosine.warmup_steps=5", "amp.loss_scale.growth_interval=6", *SAVE_ALWAYS,
            faults("overflow", "step:4 rank:1", "overflow", "step:19 rank:0", "nan", "step:20 rank:1"))


class Interrupted(RunTest):
    def uninterrupted(self):
        return self.train("whole", *SETTINGS, ranks=2)

    def assert_same(self, run, whole):
        self.assertEqual(run.digest, whole.digest)
        self.assertEqual(run.tensors(), whole.tensors())
        self.assertEqual(run.column("step"), list(range(1, STEPS + 1)), "one line a step")
        self.assertEqual(run.column("loss"), whole.column("loss"))
        self.assertEqual(run.column("skipped"), whole.column("skipped"))
        for field in ("steps", "applied_steps", "skipped_steps", "final_loss", "eval"):
            self.assertEqual(run.summary[field], whole.summary[field], field)

    def test_two_ranks_resume_in_the_middle_of_an_epoch_and_of_skips(self):
        whole = self.uninterrupted()
        for step in (3, 19, 23, 24, 71):
            rest = self.train(f"from-{step}", *SETTINGS, ranks=2, resume=whole.checkpoint(step))
            self.assertEqual(rest.digest, whole.digest, f"resumed from step {step}")
            self.assertEqual(rest.column("loss"), whole.column("loss")[step:])

    def interrupt_at_random(self, seed, interrupt, code):
        """Interrupts a run five times on its way; `interrupt` gets the live run."""
        instants = random.Random(seed)
        whole = self.uninterrupted()
        interrupted = 0
        while interrupted < 5:
            live = self.start("run", *SETTINGS, ranks=2)
            while len(live.ranks()) < 2 and live.process.poll() is None:
                time.sleep(0.001)
            # From start-up to saving, wherever a few steps and milliseconds lead.
            if live.wait_for_step(live.newest_step() + instants.randrange(7)):
                time.sleep(instants.uniform(0, 0.02))
            interrupt(live, instants)
            run = live.finish()
            self.assertIn(run.code, (0, code), run.output)
            interrupted += run.code == code
            if run.code == 0:  # it was over before, so the next one starts anew
                self.assert_same(run, whole)
                shutil.rmtree(run.directory)
        self.assert_same(self.train("run", *SETTINGS, ranks=2), whole)

    def kill_a_rank(self, seed):
        self.interrupt_at_random(seed, lambda live, instants: live.kill(instants.randrange(2)), 7)

    def kill_all_ranks(self, seed):
        self.interrupt_at_random(seed, lambda live, instants: live.kill(0, 1), 7)

    def kill_the_launcher(self, seed):
        self.interrupt_at_random(seed, lambda live, instants: live.process.kill(), -signal.SIGKILL)

    def ask_to_stop(self, seed):
        def ask(live, instants):
            # Before that, a process has no handler and just ends.
            while not live.ranks() and live.process.poll() is None:
                time.sleep(0.01)
            before = live.newest_step()
            live.process.send_signal(instants.choice([signal.SIGTERM, signal.SIGINT]))
            code = live.process.wait()
            if code == 75 and before > 0:
                self.assertGreaterEqual(live.newest_step(), before)

        self.interrupt_at_random(seed, ask, 75)

    def test_killing_a_rank_1(self):
        self.kill_a_rank(1)

    def test_killing_a_rank_2(self):
        self.kill_a_rank(2)

    def test_killing_all_ranks_1(self):
        self.kill_all_ranks(3)

    def test_killing_all_ranks_2(self):
        self.kill_all_ranks(4)

    def test_killing_the_launcher(self):
        self.kill_the_launcher(5)

    def test_asking_to_stop_1(self):
        self.ask_to_stop(6)

    def test_asking_to_stop_2(self):
        self.ask_to_stop(7)

    def test_saving_comes_before_an_evaluation(self):
        live = self.start("run", "train.steps=100000", "train.eval_every=1", "checkpoint.every_steps=5", resume="never")
        live.wait_for_step(5)
        live.process.send_signal(signal.SIGTERM)
        run = live.finish()
        self.assertEqual(run.code, 75, run.output)
        self.assertIn("with --resume auto", run.output, "the same command would start anew")
        last = run.column("step")[-1]
        self.assertEqual([line["event"] for line in run.lines if "event" in line and line["step"] == last],
                         ["preempted"])

    def test_a_lone_process_saves_when_asked_to_stop(self):
        live = self.start("run", "train.steps=100000", "checkpoint.every_steps=0")
        while not (live.directory / "metrics.jsonl").exists():
            time.sleep(0.001)
        time.sleep(0.2)
        live.process.send_signal(signal.SIGTERM)
        run = live.finish()
        self.assertEqual(run.code, 75, run.output)
        # No step is lost: what was trained is what was saved.
        self.assertEqual(run.checkpoints[-1], run.checkpoint(run.column("step")[-1]))


if __name__ == "__main__":
    unittest.main()
