# SPDX-License-Identifier: Apache-2.0
"""Every end leaves a record: summary.json, events, and curves in which each step stands once."""
import os
import shutil
import signal
import struct
import subprocess
import time
import unittest

from runs import FP32, SAVE_ALWAYS, Run, RunTest, faults

ENDS = ("done", "preempted", "failed")


def varint(content, at):
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(message):
    """(number, value) of a protobuf message; what has a length stays bytes."""
    at = 0
    while at < len(message):
        tag, at = varint(message, at)
        if tag & 7 == 0:
            value, at = varint(message, at)
        elif tag & 7 == 2:
            size, at = varint(message, at)
            value, at = message[at:at + size], at + size
        else:
            size = 8 if tag & 7 == 1 else 4
            value, at = message[at:at + size], at + size
        yield tag >> 3, value


def points(directory):
    """(tag, step) of every point in TensorBoard's files, in order."""
    found = []
    for path in sorted(directory.glob("events.out.tfevents.*")):
        content = path.read_bytes()
        at = 0
        while at < len(content):
            size = struct.unpack_from("<Q", content, at)[0]
            event = list(fields(content[at + 12:at + 12 + size]))
            at += 16 + size
            step = next((value for number, value in event if number == 2), 0)
            for summary in (value for number, value in event if number == 5):
                for _, point in fields(summary):
                    found.append((dict(fields(point))[1].decode(), step))
    return found


# A disk of 2 MB, on which the run waits, stopped, for something else to fill it; then it may go on. Its record is kept,
# room is made, and it runs again.
FILLED_DISK = """
disk=$1
shift
mount -t tmpfs -o size=2m tmpfs "$disk"
"$@" --set 'fault={stop{step:3}}' &
until grep -q '^State:.T' /proc/$!/status; do kill -0 $! || exit 99; sleep 0.01; done
cat /dev/zero > "$disk/filler"
kill -CONT $!
wait $! && exit 98
cp -r "$disk/run" "$disk.full"
rm "$disk/filler"
"$@" && cp -r "$disk/run" "$disk.again"
"""
MOUNTS = ["unshare", *([] if os.getuid() == 0 else ["--user", "--map-root-user"]), "--mount"]


def may_mount(folder):
    try:
        return subprocess.run([*MOUNTS, "mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


class Record(RunTest):
    def events(self, run, *names):
        return [line for line in run.lines if line.get("event") in names]

    def assert_ended(self, run, status, step, restarts=0):
        summary = run.summary
        self.assertEqual(summary["status"], status, summary)
        self.assertEqual(summary["exit_code"], run.code)
        self.assertEqual(summary["step"], step, summary)
        self.assertEqual(summary["restarts"], restarts)
        end = [line for line in run.lines if line.get("event") in ENDS][-1]
        self.assertEqual((end["event"], end["step"], end["exit_code"]), (status, step, run.code))
        self.assertEqual(end, run.lines[-1])
        return summary

    def test_of_a_run_whose_disk_something_else_has_filled(self):
        disk = self.folder / "disk"
        disk.mkdir()
        if not may_mount(disk):
            self.skipTest("this machine gives no namespace")
        command = self.command("disk/run", "train.steps=4", "checkpoint.every_steps=2")
        told = subprocess.run([*MOUNTS, "bash", "-c", FILLED_DISK, "bash", disk, *command], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        self.assertEqual(told.returncode, 0, told.stdout)
        full = Run(self.folder / "disk.full", 4, told.stdout)
        self.assertEqual((full.summary["status"], full.summary["exit_code"], full.summary["step"]), ("failed", 4, 4))
        self.assertIn("No space left on device", full.summary["error"]["message"])
        self.assertEqual(full.checkpoints, [full.checkpoint(2)])
        again = Run(self.folder / "disk.again")
        self.assertEqual((again.summary["status"], again.checkpoints[-1]), ("done", again.checkpoint(4)))
        self.assertIn("resuming from", told.stdout)
        self.assertFalse((again.directory / ".summary.json.room").exists())

    def test_of_a_run_that_is_done(self):
        for ranks in (1, 2, 3):
            run = self.train(f"run-{ranks}", "train.steps=4", ranks=ranks)
            summary = self.assert_ended(run, "done", 4)
            self.assertIsNone(summary["error"])
            self.assertEqual((summary["world_size"], summary["steps"], summary["applied_steps"]), (ranks, 4, 4))
            self.assertEqual(summary["final_loss"], run.step(4)["loss"])
            # Windows that ranks share are counted as private memory is: each rank holds all weights and gradients.
            peaks = summary["peak_memory_of"]
            weights = peaks["master_weights"]
            self.assertEqual((peaks["compute_copies"], peaks["optimizer_state"]), (weights // 2, weights))
            self.assertEqual(peaks["gradients"], weights + weights // 2, "those of the arena, then those of the wire")
            self.assertGreater(peaks["activations"], 0)
            self.assertGreater(summary["peak_memory_bytes"], max(peaks.values()))

    def test_of_a_run_that_was_stopped_and_resumed(self):
        live = self.start("run", "train.steps=1000000", "checkpoint.every_steps=5", ranks=2)
        live.wait_for_step(5)
        live.process.send_signal(signal.SIGTERM)
        run = live.finish()
        self.assertEqual(run.code, 75, run.output)
        step = run.column("step")[-1]
        self.assertTrue(self.assert_ended(run, "preempted", step)["weights_digest"])
        run = self.train("run", f"train.steps={step + 2}", ranks=2)
        self.assert_ended(run, "done", step + 2)
        self.assertEqual([line["event"] for line in self.events(run, "preempted", "resumed", "done")],
                         ["preempted", "resumed", "done"])

    def test_of_a_failure_that_a_rank_reports(self):
        for ranks in (1, 2):
            run = self.train(f"run-{ranks}", *FP32, "train.steps=5", faults("nan", "step:3 rank:0 phase:LOSS"),
                             ranks=ranks, code=5)
            summary = self.assert_ended(run, "failed", 3)
            self.assertRegex(summary["error"]["message"], "^the loss is nan at step 3")
            self.assertIn("in step 3", summary["error"]["where"])
            self.assertTrue(summary["error"]["advice"])
            self.assertEqual((summary["steps"], summary["weights_digest"]), (3, None))
            self.assertEqual(len(self.events(run, *ENDS)), 1)

    def test_of_a_failure_before_the_first_step(self):
        for ranks in (1, 2):
            run = self.train(f"run-{ranks}", "train.steps=2", resume=self.folder / "nowhere", ranks=ranks, code=4)
            summary = self.assert_ended(run, "failed", 0)
            self.assertIn("nowhere", summary["error"]["message"])
            self.assertIn("during start-up", summary["error"]["where"])
            self.assertEqual((summary["world_size"], summary["steps"], summary["final_loss"]), (ranks, 0, None))

    def test_of_data_that_cannot_be_read(self):
        # A file that is there, and holds something else.
        settings = ("train.steps=2", f"data.train.idx.images={__file__}")
        for ranks in (1, 2):
            run = self.train(f"run-{ranks}", *settings, ranks=ranks, code=4)
            summary = self.assert_ended(run, "failed", 0)
            self.assertIn(__file__, summary["error"]["message"])
            self.assertIn("during start-up", summary["error"]["where"])
            self.assertIsNone(summary.get("final_loss"), "a number that nobody knows")

    def test_a_refusal_makes_nothing(self):
        for ranks in (1, 2):
            self.assertFalse(self.train(f"run-{ranks}", "data.augment.pad_crop=1000", ranks=ranks, code=2).directory.exists())

    def test_of_a_killed_rank(self):
        for rank in (0, 1):
            for phase, where in (("INIT", "during start-up"), ("FORWARD", "in step 3, forward")):
                with self.subTest(rank=rank, phase=phase):
                    # Each in a directory of its own: a rank that dies at the start may leave the metrics of the run before.
                    run = self.train(f"run-{rank}-{phase}", "train.steps=5",
                                     faults("kill", f"step:3 rank:{rank} phase:{phase}"), ranks=2, code=7)
                    summary = self.assert_ended(run, "failed", 0 if phase == "INIT" else 3)
                    self.assertEqual(summary["error"]["where"], f"rank {rank}, {where}")
                    self.assertIn(f"rank {rank} ", summary["error"]["message"])
                    self.assertEqual(len(self.events(run, *ENDS)), 1)

    def test_of_restarts(self):
        kill = faults("kill", "step:5 rank:1")
        run = self.train("run", "train.steps=8", "checkpoint.every_steps=2", kill, ranks=2,
                         options=("--max-restarts", "2"))
        self.assert_ended(run, "done", 8, restarts=1)
        self.assertEqual([line["event"] for line in self.events(run, "failed", "restarted", "resumed", "done")],
                         ["failed", "restarted", "resumed", "done"])
        self.assertEqual(run.column("step"), list(range(1, 9)))

    def test_a_refused_run_leaves_the_record_of_the_one_before(self):
        run = self.train("run", "train.steps=3", "checkpoint.every_steps=1")
        before = (run.summary, run.lines)
        for ranks in (1, 2):
            self.train("run", "train.steps=4", "optimizer={adam{lr:1e-3}}", ranks=ranks, code=2)
            self.assertEqual((run.summary, run.lines), before)

    def assert_ends_where_its_directory_goes(self, live):
        # Renamed first: what is being written there would come back into a directory that is being emptied.
        os.rename(live.directory, self.folder / "gone")
        shutil.rmtree(self.folder / "gone")
        run = live.finish()
        self.assertEqual(run.code, 4, run.output)
        self.assertRegex(run.output, r"run/metrics\.jsonl was deleted or replaced while the run was writing it")
        self.assertFalse(run.directory.exists(), "it must not come back")

    def test_a_deleted_run_directory_is_an_error_at_the_next_save(self):
        live = self.start("run", "train.steps=1000000", "checkpoint.every_steps=4",
                          faults("delay", "step:8 rank:0 milliseconds:6000 phase:SAVE"))
        self.assertTrue(live.wait_for_output("saved at step 4"))
        self.assert_ends_where_its_directory_goes(live)

    def test_a_deleted_run_directory_is_an_error_at_the_next_line(self):
        live = self.start("run", "train.steps=1000000", "checkpoint.every_steps=0", ranks=2)
        self.assertTrue(live.wait_for_output("step 1/"))
        self.assert_ends_where_its_directory_goes(live)


class Metrics(RunTest):
    def test_of_a_step(self):
        begin = time.time()
        run = self.train("run", "train.steps=6", "optimizer.clip_norm=1", faults("delay",
                         "step:4 rank:1 milliseconds:700 phase:FORWARD"), ranks=2)
        end = time.time()
        times = run.column("time")
        self.assertEqual(times, sorted(times))
        self.assertTrue(begin <= times[0] and times[-1] <= end)
        for step in run.steps:
            self.assertGreater(step["grad_norm"], 0)
            self.assertTrue(0 <= step["wait_ranks_ms"] <= step["step_ms"], step)
            self.assertTrue(0 <= step["wait_data_ms"] <= step["step_ms"], step)
        # Rank 0 waits for the slow one.
        self.assertGreater(run.step(4)["wait_ranks_ms"], 500)

    def test_the_gradient_norm_is_that_of_one_rank(self):
        norms = [self.train(f"run-{ranks}", *FP32, "train.steps=3", "optimizer.clip_norm=1", ranks=ranks)
                 .column("grad_norm") for ranks in (1, 2, 3)]
        self.assert_close(norms[1], norms[0], 1e-4)
        self.assert_close(norms[2], norms[0], 1e-4)

    def test_what_nobody_knows_is_left_out(self):
        run = self.train("run", "train.steps=2")
        self.assertNotIn("grad_norm", run.step(1))
        self.assertEqual(run.step(1)["wait_ranks_ms"], 0)


class TensorBoard(RunTest):
    def assert_each_step_once(self, run, steps):
        found = points(run.directory)
        self.assertEqual(len(found), len(set(found)), "a point stands twice")
        self.assertEqual([step for tag, step in found if tag == "train/loss"], list(range(1, steps + 1)))

    def test_shows_each_step_once_after_a_crash(self):
        for settings in (("checkpoint.every_steps=4",), SAVE_ALWAYS, ()):
            with self.subTest(settings):
                run = self.train("run", "train.steps=9", "train.eval_every=1", *settings,
                                 faults("kill", "step:7 rank:1"), ranks=2, resume="never",
                                 options=("--max-restarts", "1"))
                self.assert_each_step_once(run, 9)

    def test_shows_each_step_once_after_an_end_and_another_continuation(self):
        run = self.train("run", "train.steps=6", "checkpoint.every_steps=2", "checkpoint.keep=0")
        run = self.train("run", "train.steps=8", "checkpoint.every_steps=2", resume=run.checkpoint(4))
        self.assert_each_step_once(run, 8)


if __name__ == "__main__":
    unittest.main()
