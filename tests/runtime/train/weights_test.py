# SPDX-License-Identifier: Apache-2.0
"""A run starts from weights that are there; frozen ones stay; what was exported comes back."""
import json
import subprocess
import unittest

from runs import DIGITS, LOCKSTEP, RANK_COUNTS, RunTest

CLASSIFIER = "model/classifier."


def model_tensors(run, step=None):
    return {name: values for name, values in run.tensors(step).items() if name.startswith("model/")}


class Weights(RunTest):
    def setUp(self):
        super().setUp()
        self.first = self.train("first", "train.steps=20", "seed=1")

    def export(self, name):
        out = self.folder / name
        subprocess.run([LOCKSTEP, "export", str(DIGITS), "--checkpoint", str(self.first.directory), "--out", str(out)],
                       check=True, capture_output=True)
        return out

    def test_a_run_starts_from_an_exported_file_as_from_the_run_itself(self):
        exported = self.export("weights.safetensors")
        self.assertIn("block0_norm.running_mean", read_header(exported))
        for ranks in RANK_COUNTS:
            with self.subTest(ranks=ranks):
                runs = [self.train(f"{name}{ranks}", "train.steps=3", "seed=2", f"init_from.path={source}", ranks=ranks)
                        for name, source in (("file", exported), ("run", self.first.directory))]
                self.assertEqual(runs[0].digest, runs[1].digest)
                self.assertIn("weights from", runs[0].output)
        fresh = self.train("fresh", "train.steps=3", "seed=2")
        self.assertNotEqual(fresh.digest, self.train("again", "train.steps=3", "seed=2", f"init_from.path={exported}").digest)

    def test_chosen_weights_are_taken_and_frozen_ones_stay(self):
        run = self.train("run", "train.steps=5", "seed=2", f"init_from.path={self.first.directory}",
                         "init_from.except=['^classifier']", "optimizer.group=[{match:'^block' frozen:true}]")
        before, after = model_tensors(self.first), model_tensors(run)
        for name, values in after.items():
            if name.startswith(CLASSIFIER):
                self.assertNotEqual(values, before[name], name)
            elif name.startswith("model/block"):
                self.assertEqual(values, before[name], name)
        self.assertIn("initial values stay in classifier.bias, classifier.weight", run.output)

    def test_a_resumed_run_keeps_its_own_weights(self):
        settings = ("seed=2", f"init_from.path={self.first.directory}")
        whole = self.train("whole", "train.steps=6", *settings)
        self.train("cut2", "train.steps=6", *settings, "fault=[{kill{step:5}}]", "checkpoint.every_steps=3", code=-9)
        resumed = self.train("cut2", "train.steps=6", *settings, "checkpoint.every_steps=3")
        self.assertEqual(resumed.digest, whole.digest)

    def test_a_refused_start_leaves_the_earlier_run_where_it_is(self):
        before = sorted(path.name for path in self.first.directory.iterdir())
        run = self.train("first", "train.steps=1", f"init_from.path={self.first.directory}", "init_from.match=['^nothing']",
                         resume="never", code=2)
        self.assertIn("init_from.match[0]", run.output)
        self.assertEqual(sorted(path.name for path in self.first.directory.iterdir()), before)

    def refused_export(self, *arguments, code):
        before = sorted(self.folder.rglob("*"))
        result = subprocess.run([LOCKSTEP, "export", str(DIGITS), "--checkpoint", str(self.first.directory), *arguments],
                                capture_output=True, encoding="utf-8", check=False)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(sorted(self.folder.rglob("*")), before)
        return result.stderr

    def test_a_graph_is_written_whole_or_not_at_all(self):
        graph = self.folder / "graph.onnx"
        self.assertIn(".onnx", self.refused_export("--onnx", str(self.folder / "graph.pb"), code=2))
        self.assertIn("it is a directory", self.refused_export("--onnx", str(self.make_directory("folder.onnx")), code=4))
        self.assertIn("another job", self.refused_export("--onnx", str(graph), "--set", "model={mlp{hidden:[3]}}", code=2))
        self.refused_export("--onnx", str(self.first.directory / "job.pbtxt" / "graph.onnx"), code=4)
        self.assertIn("excludes", self.refused_export("--onnx", str(graph), "--out", "w.safetensors", code=2))
        self.assertIn("--out or --onnx", self.refused_export(code=2))
        self.assertIn("--out", self.refused_export("--onnx", str(graph), "--half", code=2))
        subprocess.run([LOCKSTEP, "export", str(DIGITS), "--checkpoint", str(self.first.directory), "--onnx", str(graph)],
                       check=True, capture_output=True)
        self.assertIn(b"BatchNormalization", graph.read_bytes())

    def make_directory(self, name):
        (self.folder / name).mkdir()
        return self.folder / name

    def test_weights_that_do_not_fit_are_refused_with_every_name(self):
        run = self.train("run", "train.steps=1", f"init_from.path={self.first.directory}", "model.convnet.block[0].channels=4",
                         code=2)
        self.assertRegex(run.output, r"block0_conv.weight +\[\d+, 3, 3, 1\] +\[4, 3, 3, 1\]")
        self.assertIn(f'init_from {{ path: "{self.first.directory}" except: "^', run.output)
        missing = self.train("none", f"init_from.path={self.folder}/nowhere.pth", code=2)
        self.assertIn("init_from.path", missing.output)

    def validate(self, *settings):
        command = [LOCKSTEP, "validate", str(DIGITS)]
        for setting in settings:
            command += ["--set", setting]
        return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)

    def test_validate_refuses_weights_that_training_refuses(self):
        hub = self.make_directory("hub")
        (hub / "config.json").write_text("{}", encoding="utf-8")
        (hub / "model.safetensors").write_bytes(self.export("weights.safetensors").read_bytes())
        damaged = self.folder / "damaged.safetensors"
        damaged.write_bytes(b"12345678")
        wide = "model.convnet.block[0].channels=4"
        for settings, code, reason in (((f"init_from.path={self.first.directory}", wide), 2, "block0_conv.weight"),
                                       ((f"init_from.path={hub}",), 0, ""),
                                       ((f"init_from.path={damaged}",), 4, "damaged.safetensors"),
                                       ((f"init_from.path={self.folder}/weights.safetensors",), 0, "")):
            with self.subTest(settings=settings):
                told = self.validate(*settings)
                run = self.train("run", "train.steps=1", *settings, resume="never", code=code)
                self.assertEqual(told.returncode, code, told.stderr)
                self.assertIn(reason, told.stderr)
                self.assertIn(reason, run.output)

    def test_weights_of_a_model_that_computes_otherwise_are_refused(self):
        text = self.folder / "text.txt"
        text.write_text("to be or not to be, " * 100, encoding="utf-8")
        job = self.folder / "llama.pbtxt"
        job.write_text("""
model { llama { layers: 1 heads: 2 width: 16 hidden: 32 context: 8 } }
data { global_batch: 4 train { tokens { files: "text.txt" context: 8 } } }
optimizer { sgd { lr: 0.01 } }
train { steps: 1 }
""", encoding="utf-8")
        first = self.train("llama", job=job)
        hub = self.make_directory("llama_hub")
        subprocess.run([LOCKSTEP, "export", str(job), "--checkpoint", str(first.directory), "--out",
                        str(hub / "model.safetensors")], check=True, capture_output=True)
        same = {"model_type": "llama", "num_attention_heads": 2, "num_key_value_heads": 2, "rope_theta": 10000.0,
                "rms_norm_eps": 1e-5, "rope_scaling": None, "hidden_act": "silu", "head_dim": 8}
        scaled = {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                  "original_max_position_embeddings": 8192}
        for change, reason in (({}, ""), ({"rope_scaling": scaled}, "rope_scaling is of type llama3, the job's rope_scaling of type default"),
                               ({"rope_parameters": scaled}, "rope_scaling is of type llama3"),
                               ({"rope_theta": 500000.0}, "rope_theta is 500000.0, the job's rope_theta is 10000"),
                               ({"num_attention_heads": 4}, "num_attention_heads is 4, the job's heads is 2"),
                               ({"hidden_act": "gelu"}, 'hidden_act is "gelu", the job\'s model has silu')):
            with self.subTest(change=change):
                (hub / "config.json").write_text(json.dumps(same | change), encoding="utf-8")
                run = self.train("again", f"init_from.path={hub}", job=job, resume="never",
                                 code=2 if change else 0)
                self.assertIn(reason, run.output)


    def test_prefixes_of_lightning_and_compile_are_left_out(self):
        content = self.export("weights.safetensors").read_bytes()
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8:8 + size])
        for prefix in ("model.", "net._orig_mod.", "module."):
            with self.subTest(prefix=prefix):
                wrapped = json.dumps({name if name == "__metadata__" else prefix + name: entry
                                      for name, entry in header.items()}).encode()
                wrapped += b" " * (-len(wrapped) % 8)
                path = self.folder / "wrapped.safetensors"
                path.write_bytes(len(wrapped).to_bytes(8, "little") + wrapped + content[8 + size:])
                run = self.train("run", "train.steps=1", f"init_from.path={path}", resume="never")
                self.assertIn(f'names in the file have a wrapper\'s "{prefix}"', run.output)

    def test_the_pattern_that_a_misfit_names_is_the_one_that_does(self):
        other = ("data.train={synthetic {samples: 64 shape: [8, 8, 1] classes: 3}}", "data.eval=unset", "train.eval_every=0",
                 "train.steps=1", f"init_from.path={self.first.directory}")
        refused = self.train("run", *other, code=2)
        self.assertRegex(refused.output, r"classifier.weight +\[10, \d+\] +\[3, \d+\]")
        self.assertIn('except: "^classifier"', refused.output)
        self.train("run", *other, "init_from.except=['^classifier']")


def read_header(path):
    content = path.read_bytes()
    return content[8:8 + int.from_bytes(content[:8], "little")].decode()


if __name__ == "__main__":
    unittest.main()
