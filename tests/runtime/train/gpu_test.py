# SPDX-License-Identifier: Apache-2.0
"""Whole runs on a GPU: they agree with the CPU's, repeat their bits, resume, and never make the host wait."""
import json
import os
import signal
import subprocess
import unittest
from unittest import mock

from runs import DIGITS, FP32, LOCKSTEP, SAVE_ALWAYS, RunTest, faults

# Two epochs of 15 steps and a last one with fewer samples each; accumulation, dropout, a scale that grows.
SETTINGS = ("train.steps=32", "data.global_batch=96", "train.accumulate=2",
            "schedule.cosine.warmup_steps=5", "amp.loss_scale.growth_interval=8", "checkpoint.every_steps=0")
EXACT = (*SETTINGS, *FP32)


TOKENS = "train { synthetic { samples: 40 shape: 12 vocabulary: 17 } }"
VOLUMES = "train { spheres { samples: 40 shape: [16, 16, 16, 1] max_radius: 6 } }"
IMAGES = ("train { synthetic { samples: 40 shape: [16, 16, 3] classes: 4%s } } "
          "eval { synthetic { samples: 9 shape: [16, 16, 3] classes: 4 } }")
JOB = """
seed: 3
model { %s }
data { global_batch: 8 %s }
optimizer { sgd { lr: 0.01 momentum: 0.9 } }
train { steps: 7 %s }
"""
# 40 samples make five equal steps an epoch, so that all but the first one are graphs. A model, its data, and what of
# training belongs to it.
MODELS = {
    "gpt": ("gpt { layers: 2 heads: 2 width: 16 context: 12 dropout: 0.1 checkpoint_activations: true }", TOKENS, ""),
    "llama": ("llama { layers: 2 heads: 4 kv_heads: 2 width: 16 hidden: 24 context: 12 }", TOKENS, ""),
    "unet3d": ("unet3d { levels: 2 channels: 4 checkpoint_activations: true }", VOLUMES, ""),
    "unet3d_of_groups": ("unet3d { levels: 2 channels: 4 norm: GROUP groups: 2 up: TRILINEAR }", VOLUMES, ""),
    "resnet": ("resnet { depth: 18 stem: CIFAR width: 8 checkpoint_activations: true }",
               IMAGES % "" + " augment { mixup: 0.4 }", "ema { decay: 0.9 warmup: 3 } class_weight: [0.5, 2, 1, 1]"),
    "resident": ("resnet { depth: 18 stem: CIFAR width: 8 }", IMAGES % " resident: true", "accumulate: 2"),
}


def gpus():
    doctor = subprocess.run([LOCKSTEP, "doctor", "--json"], capture_output=True, text=True, check=True)
    return json.loads(doctor.stdout)["devices"]


class Gpu(RunTest):
    def setUp(self):
        if not gpus():
            self.skipTest("this machine has no GPU")
        super().setUp()

    def on_gpu(self, name, *settings, ranks=1, **options):
        return self.train(name, *settings, ranks=ranks, device="cuda", **options)

    def assert_same_bits(self, run, other):
        self.assertEqual(run.column("loss"), other.column("loss"))
        self.assertEqual(run.column("skipped"), other.column("skipped"))
        self.assertEqual(run.digest, other.digest)

    def test_cpu_and_gpu_agree_on_a_whole_run(self):
        cpu = self.train("cpu", *EXACT)
        gpu = self.on_gpu("gpu", *EXACT)
        self.assertEqual(gpu.summary["device"], "cuda:0")
        # Sums are taken in another order; steps let that grow.
        self.assert_same_to_rounding(gpu, cpu, 2e-3)
        self.assertAlmostEqual(gpu.summary["eval"]["accuracy"], cpu.summary["eval"]["accuracy"], delta=0.01)

    def test_cpu_and_gpu_agree_in_sixteen_bits(self):
        cpu = self.train("cpu", *SETTINGS)
        gpu = self.on_gpu("gpu", *SETTINGS)
        self.assertEqual(gpu.column("skipped"), cpu.column("skipped"))
        self.assertEqual(gpu.column("loss_scale"), cpu.column("loss_scale"))
        self.assert_close(gpu.column("loss"), cpu.column("loss"), 0.05, "losses")

    def test_one_two_and_three_ranks_agree(self):
        one = self.on_gpu("1", *EXACT)
        for ranks in (2, 3):
            self.assert_same_to_rounding(self.on_gpu(str(ranks), *EXACT, ranks=ranks), one, 2e-3)

    def test_ranks_keep_to_gpus_of_their_own(self):
        one = self.on_gpu("1", *EXACT)
        # An emulated GPU is a process's alone: one that touches a second GPU fails. Real ones are as many as there are.
        with mock.patch.dict(os.environ, {"LOCKSTEP_EMULATED_GPUS": "2"}):
            self.assert_same_to_rounding(self.on_gpu("2", *EXACT, ranks=2), one, 2e-3)

    def test_infers_what_the_cpu_does_in_float32_and_sixteen_bits(self):
        run = self.on_gpu("run", *SETTINGS)
        for half in ((), ("--half",)):
            rows = {}
            for device in ("cpu", "cuda"):
                out = self.folder / f"{device}{len(half)}.jsonl"
                subprocess.run([LOCKSTEP, "infer", str(DIGITS), "--checkpoint", str(run.directory), "--device", device,
                                "--out", str(out), *half], check=True, capture_output=True)
                rows[device] = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
            for cpu, gpu in zip(rows["cpu"], rows["cuda"], strict=True):
                self.assert_close(gpu["probabilities"], cpu["probabilities"], 0.02 if half else 1e-4, cpu["sample"])

    def test_two_runs_alike_are_bitwise_equal(self):
        for name, settings in (("fp32", EXACT), ("fp16", SETTINGS)):
            for ranks in (1, 2):
                first = self.on_gpu(f"{name}-{ranks}-a", *settings, ranks=ranks)
                self.assert_same_bits(self.on_gpu(f"{name}-{ranks}-b", *settings, ranks=ranks), first)

    def test_a_captured_step_and_an_eager_one_have_the_same_bits(self):
        for name, settings in (("fp32", EXACT), ("fp16", SETTINGS)):
            for ranks in (1, 2):
                eager = self.on_gpu(f"{name}-{ranks}-eager", *settings, "train.cuda_graph=OFF", ranks=ranks)
                graph = self.on_gpu(f"{name}-{ranks}-graph", *settings, "train.cuda_graph=ON", ranks=ranks)
                self.assert_same_bits(graph, eager)
                self.assertEqual(eager.summary["gpu"]["graph_launches"], 0)
                # The first step, and the two that end an epoch, run without.
                self.assertEqual(graph.summary["gpu"]["graph_launches"], 32 - 3)

    def test_a_captured_step_of_an_encoder_has_the_bits_of_an_eager_one(self):
        encoders = {"vit { patch: 2 layers: 2 heads: 2 width: 16 dropout: 0.1 attention_dropout: 0.1 }":
                        "shape: [8, 8, 1] classes: 4",
                    "bert { layers: 2 heads: 2 width: 16 pad_token: 3 checkpoint_activations: true }":
                        "shape: 8 vocabulary: 11"}
        for model, samples in encoders.items():
            name = model.split()[0]
            job = self.folder / f"{name}.pbtxt"
            job.write_text("model { %s } data { global_batch: 8 train { synthetic { samples: 32 %s } } } "
                           "amp { opt_level: O1 dtype: BF16 } optimizer { adamw { lr: 0.01 } } train { steps: 6 }"
                           % (model, samples), encoding="utf-8")
            eager = self.on_gpu(f"{name}-eager", "train.cuda_graph=OFF", job=job)
            graph = self.on_gpu(f"{name}-graph", "train.cuda_graph=ON", job=job)
            self.assert_same_bits(graph, eager)
            self.assertGreater(graph.summary["gpu"]["graph_launches"], 0)

    def test_a_step_never_makes_the_host_wait(self):
        for mode in ("ON", "OFF"):
            for ranks in (1, 2):
                run = self.on_gpu(f"{mode}-{ranks}", *SETTINGS, f"train.cuda_graph={mode}", ranks=ranks)
                self.assertEqual(run.summary["gpu"]["host_waits"], 0, (mode, ranks))

    def test_an_overflow_skips_exactly_its_step(self):
        storm = faults("overflow", "step:7 rank:1", "nan", "step:8 rank:0")
        eager = self.on_gpu("eager", *SETTINGS, storm, "train.cuda_graph=OFF", ranks=2)
        graph = self.on_gpu("graph", *SETTINGS, storm, ranks=2)
        self.assert_same_bits(graph, eager)
        self.assertEqual([s for s, skipped in zip(graph.column("step"), graph.column("skipped")) if skipped], [7, 8])
        self.assertEqual(graph.step(7)["rank"], 1)

    def test_a_resumed_run_has_the_bits_of_one_that_was_never_stopped(self):
        whole = self.on_gpu("whole", *SETTINGS, *SAVE_ALWAYS, ranks=2)
        for step in (1, 15, 16, 31):
            rest = self.on_gpu(f"from-{step}", *SETTINGS, *SAVE_ALWAYS, ranks=2, resume=whole.checkpoint(step))
            self.assertEqual(rest.digest, whole.digest, f"resumed from step {step}")
            self.assertEqual(rest.column("loss"), whole.column("loss")[step:])

    def test_a_reduced_rate_reaches_the_steps_that_are_captured(self):
        plateau = (*EXACT, "train.eval_every=4", "schedule={reduce_on_plateau{factor:0.25 patience:0 threshold:100 "
                   "threshold_mode:ABSOLUTE}}")
        cpu = self.train("cpu", *plateau)
        graph = self.on_gpu("graph", *plateau, "train.cuda_graph=ON")
        self.assertEqual(graph.column("lr"), cpu.column("lr"))
        self.assert_same_to_rounding(graph, cpu, 2e-3)
        # The table stays where it is: no step is captured anew.
        self.assertEqual(graph.summary["gpu"]["graph_launches"], 32 - 3)
        self.assert_same_bits(self.on_gpu("eager", *plateau, "train.cuda_graph=OFF"), graph)
        saved = self.on_gpu("saved", *plateau, *SAVE_ALWAYS)
        for step in (8, 9):
            rest = self.on_gpu(f"from-{step}", *plateau, *SAVE_ALWAYS, resume=saved.checkpoint(step))
            self.assertEqual((rest.column("lr"), rest.digest), (graph.column("lr")[step:], graph.digest))

    def test_finds_the_learning_rate_that_the_cpu_finds(self):
        found = {}
        for device in ("cpu", "cuda"):
            command = [LOCKSTEP, "find-lr", str(DIGITS), "--device", device, "--json", "--from", "1e-4"]
            for setting in FP32:
                command += ["--set", setting]
            found[device] = json.loads(subprocess.run(command, check=True, capture_output=True, cwd=self.folder).stdout)
        self.assertEqual(found["cuda"]["suggestion"], found["cpu"]["suggestion"])
        steepest = [point["lr"] for point in found["cpu"]["points"]].index(found["cpu"]["suggestion"])
        cpu, cuda = ([point["loss"] for point in found[device]["points"]][:steepest] for device in ("cpu", "cuda"))
        self.assert_close(cuda, cpu, 2e-3, "losses")

    def test_a_run_goes_on_from_gpu_to_cpu_and_back(self):
        settings = (*EXACT, *SAVE_ALWAYS)
        whole = self.on_gpu("whole", *settings)
        rest = self.train("rest", *settings, resume=whole.checkpoint(16))
        self.assert_close(rest.column("loss"), whole.column("loss")[16:], 2e-3, "GPU to CPU")
        back = self.on_gpu("back", *settings, resume=rest.checkpoint(24))
        self.assert_close(back.column("loss"), whole.column("loss")[24:], 2e-3, "CPU to GPU")

    def jobs_of_models(self):
        for name, (model, data, training) in MODELS.items():
            job = self.folder / f"{name}.pbtxt"
            job.write_text(JOB % (model, data, training), encoding="utf-8")
            yield name, job

    def test_every_model_agrees_with_the_cpu_on_one_rank_and_two(self):
        for name, job in self.jobs_of_models():
            cpu = self.train(f"{name}-cpu", *FP32, job=job)
            for ranks in (1, 2):
                with self.subTest(model=name, ranks=ranks):
                    gpu = self.on_gpu(f"{name}-{ranks}", *FP32, job=job, ranks=ranks)
                    self.assert_same_to_rounding(gpu, cpu, 2e-3)

    def test_every_models_captured_step_has_the_bits_of_an_eager_one(self):
        settings = ("amp={opt_level:O1 dtype:FP16}",)
        for name, job in self.jobs_of_models():
            for ranks in (1, 2):
                with self.subTest(model=name, ranks=ranks):
                    eager = self.on_gpu(f"{name}-{ranks}-eager", *settings, "train.cuda_graph=OFF", job=job,
                                        ranks=ranks)
                    graph = self.on_gpu(f"{name}-{ranks}-graph", *settings, "train.cuda_graph=ON", job=job,
                                        ranks=ranks)
                    self.assert_same_bits(graph, eager)
                    self.assertEqual(graph.tensors(), eager.tensors())
                    self.assertEqual(graph.summary["gpu"]["graph_launches"], 7 - 1)
                    self.assertEqual(graph.summary["gpu"]["host_waits"], 0)

    def test_asked_to_stop_it_saves(self):
        live = self.start("run", "train.steps=1000000", "checkpoint.every_steps=10", ranks=2, device="cuda")
        live.wait_for_step(10)
        live.process.send_signal(signal.SIGTERM)
        run = live.finish()
        self.assertEqual(run.code, 75, run.output)
        self.assertEqual(run.checkpoints[-1], run.checkpoint(run.column("step")[-1]))

    def test_a_rank_that_dies_ends_the_others(self):
        run = self.on_gpu("run", *SETTINGS, faults("kill", "step:9 rank:1"), ranks=2, code=7)
        self.assertIn("rank 1 ", run.output)


if __name__ == "__main__":
    unittest.main()
