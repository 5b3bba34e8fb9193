# SPDX-License-Identifier: Apache-2.0
"""Many runs of a job: all trained, and resumed where they were stopped."""
import json
import random
import signal
import subprocess
import time
import unittest

from runs import LOCKSTEP, RunTest, DIGITS

SHORT = ("train.steps=30", "schedule.cosine.warmup_steps=5", "train.eval_every=10", "checkpoint.every_steps=5")


class Sweep(RunTest):
    def command(self, folder, *settings, grid="optimizer.sgd.lr=0.02,0.05,0.1", jobs=2):
        command = [LOCKSTEP, "sweep", str(DIGITS), "--folder", str(self.folder / folder), "--device", "cpu", "--jobs", str(jobs), "--grid", grid]
        for setting in (*SHORT, *settings):
            command += ["--set", setting]
        return command

    def checkpoints(self, folder):
        return list((self.folder / folder).glob("*/checkpoints/step-*"))

    def digests(self, folder):
        return {path.parent.name: json.loads(path.read_text())["weights_digest"] for path in (self.folder / folder).glob("*/summary.json")}

    def test_every_run_is_trained_and_listed_by_its_best_value(self):
        ended = subprocess.run(self.command("sweep"), capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, 0, ended.stderr + ended.stdout)
        self.assertEqual(sorted(self.digests("sweep")), ["lr=0.02", "lr=0.05", "lr=0.1"])
        self.assertEqual(len(set(self.digests("sweep").values())), 3)
        self.assertRegex(ended.stdout, r"(?m)^3/3  lr=0\.\d+: done, eval\.accuracy 0\.\d+ at step \d+$")
        listed = [line.split()[0] for line in ended.stdout.splitlines() if " 30/30 " in line]
        self.assertEqual(len(listed), 3)
        again = subprocess.run(self.command("sweep"), capture_output=True, text=True, check=False)
        self.assertIn("3 runs in", again.stdout)
        self.assertIn("3 of them ended before", again.stdout)

    def test_one_that_is_killed_or_stopped_goes_on_to_the_same_bits(self):
        subprocess.run(self.command("whole"), capture_output=True, check=True)
        draw = random.Random(3)
        for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            with self.subTest(how):
                name = f"cut{how}"
                for _ in range(2):
                    saved = len(self.checkpoints(name))
                    sweep = subprocess.Popen(self.command(name), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    while sweep.poll() is None and len(self.checkpoints(name)) == saved:
                        time.sleep(0.001)
                    time.sleep(draw.uniform(0, 0.05))
                    sweep.send_signal(how)
                    sweep.wait()
                    if saved == 0:
                        self.assertNotEqual(sweep.returncode, 0, "it was to be cut")
                ended = subprocess.run(self.command(name), capture_output=True, text=True, check=False)
                self.assertEqual(ended.returncode, 0, ended.stderr + ended.stdout)
                self.assertEqual(self.digests(name), self.digests("whole"))

    def test_runs_of_another_job_are_not_its_own(self):
        subprocess.run(self.command("sweep", grid="optimizer.sgd.lr=0.1"), capture_output=True, check=True)
        ended = subprocess.run(self.command("sweep", "train.steps=40", grid="optimizer.sgd.lr=0.1"), capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, 2, ended.stdout)
        self.assertIn("lr=0.1 was trained by another job: train.steps is 30 there, and 40 here", ended.stderr)

    def test_a_sweep_of_epochs_knows_its_runs(self):
        command = self.command("sweep", "train.epochs=1", "schedule=unset", grid="optimizer.sgd.lr=0.1")
        subprocess.run(command, capture_output=True, check=True)
        again = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertIn("1 of them ended before", again.stdout + again.stderr)

    def test_a_wrong_setting_is_refused_before_anything_is_trained(self):
        ended = subprocess.run(self.command("sweep", grid="optimizer.sgd.lr=0.1,high"), capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, 2)
        self.assertFalse((self.folder / "sweep").exists())

    def test_a_run_whose_numbers_go_wrong_does_not_end_the_sweep(self):
        ended = subprocess.run(self.command("sweep", "train.eval_every=0", grid="optimizer.sgd.lr=0.1,1e30"), capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, 0, ended.stderr + ended.stdout)
        self.assertRegex(ended.stdout, r"(?m)  lr=1e30: failed, exit code 5")


if __name__ == "__main__":
    unittest.main()
