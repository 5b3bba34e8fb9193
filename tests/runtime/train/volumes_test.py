# SPDX-License-Identifier: Apache-2.0
"""A 3D U-Net finds spheres: alike on any number of ranks and in every precision, resumed to the same bits."""
import json
import subprocess
import unittest

from runs import CONFIGS, FP32, HAS_MPI, LOCKSTEP, RANK_COUNTS, RunTest, read_npy, read_tensors

JOB = CONFIGS / "unet3d_synthetic.pbtxt"
SMALL = ("data.train.spheres.samples=20", "data.train.spheres.shape=[16,16,16,1]", "data.train.spheres.max_radius=6",
         "data.eval.spheres.samples=7", "data.eval.spheres.shape=[16,16,16,1]", "data.eval.spheres.max_radius=6",
         "model.unet3d.channels=4", "schedule.cosine.warmup_steps=2")
SHORT = (*SMALL, "train.steps=6", "train.eval_every=0")
# As in ranks_test.py.
ROUNDING = 5e-5
# Where a gradient is next to nothing, Adam would blow its rounding up to a whole step.
SGD = "optimizer={sgd{lr:0.02 momentum:0.9}}"


class Volumes(RunTest):
    def run_job(self, name, *settings, **options):
        return self.train(name, *SHORT, *settings, job=JOB, **options)

    def compare(self, *settings):
        reference = self.run_job("1", *FP32, SGD, *settings)
        for ranks in (2, 3):
            run = self.run_job(str(ranks), *FP32, SGD, *settings, ranks=ranks)
            self.assert_same_to_rounding(run, reference, ROUNDING)

    def test_one_two_and_three_ranks_train_alike(self):
        self.compare()

    def test_instance_norm_and_patches_train_alike_on_uneven_ranks(self):
        self.compare("model.unet3d={levels:2 channels:4 norm:INSTANCE up:TRILINEAR activation:GELU}",
                     "data.global_batch=5", "data.augment.patch=[8,16,8]")

    def test_a_rank_without_a_sample(self):
        self.compare("data.global_batch=2", "train.steps=3")

    def test_a_resumed_run_reaches_the_same_bits(self):
        settings = ("checkpoint.every_steps=3", "checkpoint.keep=0")
        whole = self.run_job("whole", *settings)
        rest = self.run_job("rest", *settings, resume=whole.checkpoint(3))
        self.assertEqual(rest.digest, whole.digest)
        self.assertEqual(rest.column("loss"), whole.column("loss")[3:])

    def test_16_bits_learn_as_float32_does(self):
        settings = (*SMALL, "train.steps=60", "train.eval_every=0")
        dice = {}
        for name, more in {"fp32": FP32, "bf16": (), "fp16": ("amp.dtype=FP16", "comm.wire_dtype=FP16")}.items():
            dice[name] = self.train(name, *settings, *more, job=JOB).summary["eval"]["dice"]
        self.assertGreaterEqual(min(dice.values()), 0.75, dice)
        self.assertLessEqual(max(dice.values()) - min(dice.values()), 0.05, dice)

    def infer(self, run, name, *settings, ranks=1, code=0, options=()):
        out = self.folder / name
        command = [LOCKSTEP, "infer", str(JOB), "--device", "cpu", "--checkpoint", str(run.directory), "--json", "--out",
                   str(out), *options]
        for setting in (*SHORT, *settings):
            command += ["--set", setting]
        if ranks > 1:
            command += ["--nproc", str(ranks)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return (json.loads(done.stdout), out) if code == 0 else done.stderr

    def test_infer_writes_masks_of_whole_volumes_on_any_number_of_ranks(self):
        patch = ("data.augment.patch=[8,8,8]",)
        run = self.run_job("run", *patch)
        files = set()
        for ranks in (1, 2, 3) if HAS_MPI else (1,):
            result, out = self.infer(run, f"masks{ranks}.npy", *patch, ranks=ranks)
            self.assertEqual((result["samples"], result["not_finite"]), (7, 0))
            files.add(out.read_bytes())
        self.assertEqual(len(files), 1)
        dtype, shape, values = read_npy(out)
        self.assertEqual((dtype, shape), ("<f4", (7, 16, 16, 16)))
        self.assertTrue(all(0 <= value <= 1 for value in values))
        result, _ = self.infer(run, "half.npy", options=("--half",))
        self.assertLess(result["float32"]["largest_difference"], 0.05)
        self.assertIn(".npy", self.infer(run, "masks.csv", code=2))

    def test_what_cannot_be_halved_is_refused_before_anything_runs(self):
        run = self.train("run", *SHORT, "model.unet3d.levels=5", code=2, job=JOB)
        self.assertIn("model.unet3d.levels: 5 levels need extents that are multiples of 32", run.output)
        run = self.train("patch", *SHORT, "data.augment.patch=[8,8,17]", code=2, job=JOB)
        self.assertIn("data.augment.patch: [8, 8, 17] is no window", run.output)
        run = self.train("loss", *SHORT, "train.loss=CROSS_ENTROPY", code=2, job=JOB)
        self.assertIn("train.loss", run.output)

    def test_the_best_dice_is_kept(self):
        for ranks in RANK_COUNTS:
            run = self.train(f"run{ranks}", *SMALL, "train.steps=8", "train.eval_every=2", "data.eval_batch=3", job=JOB,
                             ranks=ranks)
            dice = {line["step"]: line["dice"] for line in run.lines if line.get("event") == "eval"}
            best = max(dice, key=lambda step: (dice[step], -step))
            kept = [path.name for path in (run.directory / "best").iterdir()]
            self.assertEqual(kept, [f"step-{best:08}"])
            self.assertTrue(read_tensors(run.directory / "best" / kept[0] / "tensors.safetensors"))


if __name__ == "__main__":
    unittest.main()
