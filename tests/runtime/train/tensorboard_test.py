# SPDX-License-Identifier: Apache-2.0
"""TensorBoard itself reads every curve that a run writes: the numbers of metrics.jsonl."""
import site
import struct
import unittest

from runs import RunTest, faults

try:
    site.main()  # CMake starts the tests without installed packages
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    EventAccumulator = None

CURVES = {"train/loss": "loss", "train/lr": "lr", "train/loss_scale": "loss_scale", "train/skipped": "skipped",
          "train/samples_per_s": "samples_per_s", "train/grad_norm": "grad_norm",
          "data/wait_ms": "wait_data_ms", "data/queue_depth": "queue_depth"}
SETTINGS = ("optimizer.clip_norm=1", "train.eval_every=2", "schedule.cosine.warmup_steps=2",
            faults("overflow", "step:3"))


def float32(value):
    return struct.unpack("f", struct.pack("f", float(value)))[0]


@unittest.skipIf(EventAccumulator is None, "the Python package tensorboard is not installed")
class TensorBoard(RunTest):
    def curves(self, run):
        """{tag: {step: value}}; a step that comes twice fails."""
        reader = EventAccumulator(str(run.directory), size_guidance={"scalars": 0})
        reader.Reload()
        found = {}
        for tag in reader.Tags()["scalars"]:
            points = reader.Scalars(tag)
            found[tag] = {point.step: point.value for point in points}
            self.assertEqual(len(points), len(found[tag]), tag)
        return found

    def test_reads_what_the_metrics_say(self):
        run = self.train("run", "train.steps=6", *SETTINGS)
        curves = self.curves(run)
        evaluations = [line for line in run.lines if line.get("event") == "eval"]
        self.assertEqual([2, 4, 6], [line["step"] for line in evaluations])
        of_evaluations = {f"eval/{name}" for name in ("loss", "accuracy", "top5_accuracy")}
        self.assertEqual(set(CURVES) | of_evaluations, set(curves))
        for tag, name in CURVES.items():
            self.assertEqual({line["step"] for line in run.steps}, set(curves[tag]), tag)
            expected = {line["step"]: float32(line[name]) for line in run.steps if line.get(name) is not None}
            # JSON has no number for the norm of a skipped step, which is not finite.
            self.assertGreaterEqual(len(expected), 5, tag)
            for step, value in expected.items():
                self.assertAlmostEqual(value, curves[tag][step], delta=1e-5 * max(1, abs(value)), msg=f"{tag} {step}")
        for tag in of_evaluations:
            expected = {line["step"]: line[tag.removeprefix("eval/")] for line in evaluations}
            self.assertEqual({step: float32(value) for step, value in expected.items()}, curves[tag])

    def test_a_resumed_run_is_one_curve(self):
        killed = faults("kill", "step:5")
        self.start("run", "train.steps=6", "checkpoint.every_steps=2", *SETTINGS[:-1], killed).finish()
        run = self.train("run", "train.steps=6", "checkpoint.every_steps=2", *SETTINGS[:-1])
        self.assertEqual([1, 2, 3, 4, 5, 6], sorted(self.curves(run)["train/loss"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)  # says why it is skipped
