# SPDX-License-Identifier: Apache-2.0
"""Many runs of a job: all trained, or the best of them, and resumed where they were stopped."""
import json
import random
import re
import signal
import subprocess
import time
import unittest

from runs import LOCKSTEP, RunTest, DIGITS

SHORT = ("train.steps=30", "schedule.cosine.warmup_steps=5", "train.eval_every=10", "checkpoint.every_steps=5")


class Sweep(RunTest):
    def command(self, folder, *settings, grid="optimizer.sgd.lr=0.02,0.05,0.1", jobs=2, options=()):
        command = [LOCKSTEP, "sweep", str(DIGITS), "--folder", str(self.folder / folder), "--device", "cpu", "--jobs", str(jobs), "--grid", grid, *options]
        for setting in (*SHORT, *settings):
            command += ["--set", setting]
        return command

    def newest(self, folder):
        """The newest step that each run has saved."""
        found = {}
        for path in (self.folder / folder).glob("*/checkpoints/step-????????"):
            run = path.parts[-3]
            found[run] = max(found.get(run, 0), int(path.name.removeprefix("step-")))
        return found

    def cut(self, folder, how, delays, **options):
        """Starts the sweep so often, and signals it so many seconds after a run has saved something new."""
        for delay in delays:
            before = self.newest(folder)
            sweep = subprocess.Popen(self.command(folder, **options), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while sweep.poll() is None and self.newest(folder) == before:
                time.sleep(0.001)
            time.sleep(delay)
            sweep.send_signal(how)
            sweep.wait()
            if not before:
                self.assertNotEqual(sweep.returncode, 0, "it was to be cut")

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
                self.cut(f"cut{how}", how, [draw.uniform(0, 0.05) for _ in range(2)])
                self.call(f"cut{how}")
                self.assertEqual(self.digests(f"cut{how}"), self.digests("whole"))

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

    def call(self, *arguments, code=0, **options):
        ended = subprocess.run(self.command(*arguments, **options), capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, code, ended.stderr + ended.stdout)
        return ended.stdout + ended.stderr

    def steps(self, folder):
        return {path.parent.name: json.loads(path.read_text())["step"] for path in (self.folder / folder).glob("*/summary.json")}

    def test_halving_trains_the_best_on_to_the_bits_of_a_whole_sweep(self):
        grid = "optimizer.sgd.lr=1e-5,0.02,0.05,1e-4"
        self.call("whole", grid=grid)
        options = ("--halving", "eval.loss", "--first-steps", "10")
        told = self.call("halved", grid=grid, options=options)
        self.assertIn("one of 2 goes on by eval.loss at steps 10, 20", told)
        self.assertRegex(told, r"at step 10 2 of 4 runs go on, by eval\.loss from [0-9.]+ \(lr=0\.0[25]\) to [0-9.]+ \(lr=0\.0[25]\)")
        self.assertRegex(told, r"(?m)^4/4  lr=[0-9.e-]+: at step 10, eval\.accuracy")
        # The table compares by the same metric.
        losses = [float(loss) for loss in re.findall(r"(?m)^lr=\S+ .* loss ([0-9.]+) ", told)]
        self.assertEqual((len(losses), losses), (4, sorted(losses)))
        steps = self.steps("halved")
        self.assertEqual(sorted(steps.values()), [10, 10, 20, 30])
        self.assertEqual([steps["lr=1e-5"], steps["lr=1e-4"]], [10, 10], "the lowest rates learn the least")
        last = max(steps, key=steps.get)
        self.assertEqual(self.digests("halved")[last], self.digests("whole")[last])
        again = self.call("halved", grid=grid, options=options)
        self.assertNotRegex(again, r"(?m)^\d+/\d+  lr", "nothing is left to train")
        self.assertEqual(self.steps("halved"), steps)

    def test_halving_that_is_killed_or_stopped_decides_alike(self):
        grid = "optimizer.sgd.lr=0.01,0.02,0.05,0.1"
        options = ("--halving", "eval.accuracy", "--first-steps", "10")
        self.call("whole", grid=grid, options=options)
        draw = random.Random(5)
        for how in (signal.SIGKILL, signal.SIGTERM):
            with self.subTest(how):
                name = f"cut{how}"
                self.cut(name, how, [draw.uniform(0, 0.3) for _ in range(6)], grid=grid, options=options)
                self.call(name, grid=grid, options=options)
                self.assertEqual(self.steps(name), self.steps("whole"))
                self.assertEqual(self.digests(name), self.digests("whole"))

    def test_a_run_whose_numbers_go_wrong_leaves_its_place_to_another(self):
        told = self.call("sweep", grid="optimizer.sgd.lr=1e30,0.05", options=("--halving", "eval.loss", "--first-steps", "10"), code=2)
        self.assertIn("of 2 runs 1 comes to the rung at step 20", told)
        told = self.call("sweep", grid="optimizer.sgd.lr=1e30,0.05", options=("--halving", "eval.loss", "--first-steps", "20"))
        self.assertRegex(told, r"at step 20 1 of 2 runs goes on, by eval\.loss [0-9.]+ \(lr=0\.05\)")
        self.assertEqual(self.steps("sweep")["lr=0.05"], 30)

    def test_a_rung_without_a_number_ends_the_sweep(self):
        told = self.call("sweep", grid="optimizer.sgd.lr=1e30,1e31", options=("--halving", "eval.loss", "--first-steps", "20"), code=5)
        self.assertIn("no run has a number for eval.loss at step 20", told)

    def test_halving_that_cannot_be_is_refused_before_anything_is_trained(self):
        for options, settings, why in (
                (("--halving", "eval.dice", "--first-steps", "10"), (), "there are eval.loss, eval.accuracy"),
                (("--halving", "eval.loss", "--first-steps", "10"), ("data.eval=unset", "train.eval_every=0"), "names no evaluation data"),
                (("--halving", "eval.loss", "--first-steps", "10"), ("train.eval_every=0",), "multiple of train.eval_every"),
                (("--halving", "eval.loss", "--first-steps", "5"), ("train.eval_every=5",), "of 3 runs 1 comes to the rung at step 20"),
                (("--halving", "eval.loss"), (), "--first-steps"),
                (("--first-steps", "10"), (), "--halving")):
            with self.subTest(why):
                self.assertIn(why, self.call("sweep", *settings, options=options, code=2))
                self.assertFalse((self.folder / "sweep").exists())


if __name__ == "__main__":
    unittest.main()
