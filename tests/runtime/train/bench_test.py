# SPDX-License-Identifier: Apache-2.0
"""lockstep bench: where a step's time goes."""
import json
import os
import subprocess
import unittest

from runs import CONFIGS, DIGITS, FP32, LOCKSTEP, RunTest, faults, require_mpi

MLP = CONFIGS / "digits_mlp.pbtxt"
PARTS = ["data", "forward", "backward", "communication", "optimizer", "rest"]
SPREAD = {"mean": float, "p10": float, "p50": float, "p90": float}
SCHEMA = {"device": str, "threads": int, "samples": int, "steps": int, "step": dict, "unclocked": dict,
          "clock_cost": float, "parts": dict, "operations": list, "layers": list, "floors": dict, "buckets": int,
          "wire_dtype": str, "ranks": list, "memory": dict, "straggler": (int, type(None)), "bound": dict, "prediction": type(None)}
PREDICTION = {"own_step_ms": float, "spare_cores": bool, "host": dict, "network": dict, "steps": list}
PREDICTED = {"ranks": int, "hosts": int, "samples": float, "step_ms": float, "exposed_ms": float, "taken_ms": float,
             "efficiency": float,
             "samples_per_s": float, "extrapolation": bool}
NUMBER = (float, int, type(None))
OPERATION = {"name": str, "kind": str, "dtype": (str, type(None)), "calls": float, "ms": float, "share": float,
             "gflop_per_s": NUMBER, "gb_per_s": NUMBER, "of_floor": NUMBER, "implementation": (str, type(None))}


# Far longer than a step, in each that is trained: 4 to warm up, 5 that are timed and as many between them.
DELAYS = [text for step in range(1, 15) for text in ("delay", f"step:{step} rank:1 milliseconds:60 phase:FORWARD")]

TEXT_JOB = """name: "text"
seed: 1
model { gpt { layers: 2 heads: 2 width: 16 context: 16 } }
data { global_batch: 4 train { tokens { files: "text.txt" context: 16 } } }
optimizer { adamw { lr: 1e-3 } }
train { steps: 10 }
"""


class Bench(RunTest):
    def bench(self, *options, job=DIGITS, settings=(), code=0, environment=None):
        command = [LOCKSTEP, "bench", str(job), *options]
        for setting in settings:
            command += ["--set", setting]
        told = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder,
                              env={**os.environ, **(environment or {})})
        self.assertEqual(told.returncode, code, told.stderr)
        return told

    def report(self, *options, **where):
        return json.loads(self.bench("--device", "cpu", "--steps", "5", "--json", *options, **where).stdout)

    def assert_has(self, found, schema):
        self.assertEqual(list(found), list(schema))
        for name, kind in schema.items():
            self.assertIsInstance(found[name], kind, name)

    def calls(self, report):
        return {line["name"]: line["calls"] for line in report["operations"] if line["kind"] == "operation"}

    def test_the_report_has_every_field_and_nothing_is_written(self):
        report = self.report()
        self.assert_has(report, SCHEMA)
        self.assertEqual(list(report["parts"]), PARTS)
        for part in report["parts"].values():
            self.assert_has(part, {**SPREAD, "share": float})
        self.assert_has(report["step"], SPREAD)
        for line in report["operations"]:
            self.assert_has(line, OPERATION)
        self.assertEqual([line["ms"] for line in report["operations"]],
                         sorted((line["ms"] for line in report["operations"]), reverse=True))
        self.assertEqual((report["samples"], report["steps"], len(report["ranks"])), (64, 5, 1))
        for name in ("float32_gflop_per_s", "bfloat16_gflop_per_s", "float16_gflop_per_s", "memory_gb_per_s",
                     "cache_gb_per_s"):
            self.assertGreater(report["floors"][name], 0)
        self.assertIsNone(report["floors"]["all_reduce"])
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_memory_is_told_by_purpose_and_what_would_save_some(self):
        (self.folder / "text.txt").write_text("Some words, again and again. " * 40, encoding="utf-8")
        job = self.folder / "job.pbtxt"
        job.write_text(TEXT_JOB, encoding="utf-8")
        deep = "model.gpt.layers=6"
        memory = self.report(job=job, settings=(deep,))["memory"]
        self.assertEqual(list(memory), ["peak_bytes", "operation", "parts", "purposes", "smaller"])
        self.assertEqual(set(memory["parts"]), {"forward", "backward", "optimizer", "rest"})
        self.assertEqual(max(memory["parts"].values()), memory["peak_bytes"])
        self.assertEqual(list(memory["purposes"].values()), sorted(memory["purposes"].values(), reverse=True))
        self.assertLessEqual(max(memory["purposes"].values()), memory["peak_bytes"])
        self.assertGreaterEqual(sum(memory["purposes"].values()), memory["peak_bytes"])
        for purpose in ("master weights", "optimizer state", "gradients", "activations"):
            self.assertGreater(memory["purposes"][purpose], 0)
        # Each is what such a job takes.
        half, checkpoints = memory["smaller"]
        for smaller, setting in ((half, "data.global_batch=2"), (checkpoints, "model.gpt.checkpoint_activations=true")):
            self.assertEqual(smaller["setting"], setting)
            self.assertLess(smaller["peak_bytes"], memory["peak_bytes"])
            told = self.report(job=job, settings=(deep, setting))["memory"]
            self.assertEqual(smaller["peak_bytes"], told["peak_bytes"])
        self.assertNotIn(checkpoints["setting"], [smaller["setting"] for smaller in told["smaller"]])

    def test_parts_are_the_step_and_operations_no_more(self):
        report = self.report()
        # The step's mean is another clock's, which looks earlier and later.
        parts = sum(part["mean"] for part in report["parts"].values())
        self.assertLessEqual(parts, report["step"]["mean"])
        self.assertGreater(parts, 0.5 * report["step"]["mean"])
        self.assertLessEqual(sum(line["ms"] for line in report["operations"]), parts * (1 + 1e-9))
        of_layers = sum(layer["forward_ms"] + layer["backward_ms"] for layer in report["layers"])
        of_operations = sum(line["ms"] for line in report["operations"] if line["kind"] == "operation")
        self.assertAlmostEqual(of_layers, of_operations, delta=1e-9 * of_operations)

    def test_operations_and_calls_are_the_jobs_on_any_number_of_ranks(self):
        require_mpi()
        settings = ("comm.sync_batch_norm=false",)
        one = self.calls(self.report(job=MLP, settings=settings))
        self.assertEqual((one["linear"], one["linear backward"], one["cross_entropy"]), (3, 3, 1))
        for ranks in (2, 3):
            report = self.report("--nproc", str(ranks), job=MLP, settings=settings)
            self.assertEqual(self.calls(report), one)
            self.assertEqual(len(report["ranks"]), ranks)
            self.assertGreater(report["parts"]["communication"]["mean"], 0)
            self.assertGreater(report["floors"]["all_reduce"]["alpha_us"], 0)
            self.assertIn("shared memory", report["floors"]["all_reduce"]["transport"])
            for rank in report["ranks"]:
                self.assertAlmostEqual(rank["own_ms"], rank["step_ms"] - rank["waited_ms"])

    def test_recomputed_operations_are_named_apart(self):
        job = self.folder / "text.pbtxt"
        (self.folder / "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 40)
        job.write_text(TEXT_JOB)
        plain = self.calls(self.report(job=job))
        again = self.calls(self.report(job=job, settings=("model.gpt.checkpoint_activations=true",)))
        # Each of the two blocks has two products of the attention and two of the feed-forward network.
        self.assertEqual(again["linear again"], 8)
        self.assertEqual((again["linear"], again["linear backward"]), (plain["linear"], plain["linear backward"]))
        self.assertEqual(again["checkpoint backward"], 2)
        self.assertNotIn("linear again", plain)

    def test_a_slow_rank_is_named(self):
        require_mpi()
        report = self.report("--nproc", "2", settings=(*FP32, faults(*DELAYS)))
        self.assertEqual(report["straggler"], 1)
        self.assertEqual(report["bound"]["name"], "straggler")
        self.assertGreater(report["ranks"][0]["waited_ms"], report["ranks"][1]["waited_ms"])

    def test_the_text_has_the_tables_and_a_sentence(self):
        told = self.bench("--device", "cpu", "--steps", "3").stdout
        for word in (*PARTS, "step", "operation", "layer", "floors", "measuring", "bound"):
            self.assertRegex(told, rf"(?m)^{word} ")
        self.assertEqual(told.count("\n"), len(told.splitlines()))
        shown = told[told.index("\noperation"):told.index("\nlayer")].strip().splitlines()
        self.assertEqual(len(shown), 11)
        everything = self.bench("--device", "cpu", "--steps", "3", "--all").stdout
        self.assertGreater(len(everything.splitlines()), len(told.splitlines()))

    def test_a_lone_rank_predicts_others_over_the_network_that_is_given(self):
        report = self.report("--predict", "1,2,4,1000:2", "--network-gbps", "10", "--latency-us", "20", job=MLP)
        prediction = report["prediction"]
        self.assert_has(prediction, PREDICTION)
        self.assertEqual(prediction["network"]["latency_us"], 20)
        self.assertEqual((prediction["network"]["measured"], prediction["host"]["measured"]), (False, False))
        self.assertAlmostEqual(prediction["network"]["gbit_per_s"], 9.41, delta=0.01)
        own = prediction["own_step_ms"]
        self.assertGreater(own, 0)
        self.assertLess(own, 2 * report["unclocked"]["p90"])
        for row in prediction["steps"]:
            self.assert_has(row, PREDICTED)
            self.assertAlmostEqual(row["step_ms"], own + row["exposed_ms"] + row["taken_ms"], delta=1e-9 * row["step_ms"])
            self.assertAlmostEqual(row["efficiency"], own / row["step_ms"])
            self.assertAlmostEqual(row["samples_per_s"], 1e3 * row["samples"] / row["step_ms"])
        one, two, four, many = prediction["steps"]
        self.assertEqual([(row["ranks"], row["hosts"], row["samples"]) for row in prediction["steps"]],
                         [(1, 1, 64), (2, 1, 128), (4, 2, 256), (1000, 500, 64_000)])
        self.assertEqual([row["extrapolation"] for row in prediction["steps"]], [False, True, True, True])
        self.assertEqual((one["step_ms"], one["exposed_ms"]), (own, 0))
        self.assertGreater(four["exposed_ms"], two["exposed_ms"])
        # A meeting, the gradients, the verdict and the sums: each at least one way there and back.
        self.assertGreater(four["exposed_ms"], 3 * 2 * 0.02)
        self.assertGreater(many["exposed_ms"], four["exposed_ms"])

    def test_a_lone_rank_predicts_other_batches_from_half_of_its_own(self):
        report = self.report("--predict", "1,4:4", "--predict-batches", "32,48,64,256", job=MLP)
        steps = report["prediction"]["steps"]
        self.assertEqual([(row["ranks"], row["samples"]) for row in steps],
                         [(ranks, ranks * samples) for ranks in (1, 4) for samples in (32, 48, 64, 256)])
        self.assertEqual([row["extrapolation"] for row in steps], [False, False, False, True] + 4 * [True])
        self.assertEqual(steps[2]["step_ms"], report["prediction"]["own_step_ms"])
        self.assertAlmostEqual(steps[1]["step_ms"], (steps[0]["step_ms"] + steps[2]["step_ms"]) / 2)
        for row in steps:
            self.assert_has(row, PREDICTED)
            self.assertGreaterEqual(row["step_ms"], row["exposed_ms"])

    def test_a_run_measures_its_host_and_its_network(self):
        require_mpi()
        within = self.report("--nproc", "2", "--predict", "2", job=MLP)["prediction"]
        self.assertTrue(within["host"]["measured"])
        self.assertGreater(within["host"]["gb_per_s"], 0)
        self.assertIsNone(within["network"])
        self.assertFalse(within["steps"][0]["extrapolation"])
        between = self.report("--nproc", "2", "--predict", "2,4", job=MLP, environment={"LOCKSTEP_RANKS_PER_NODE": "1"})
        prediction = between["prediction"]
        self.assertFalse(prediction["host"]["measured"])
        self.assertTrue(prediction["network"]["measured"])
        self.assertEqual(prediction["network"]["transport"], "mpi")
        self.assertGreater(prediction["network"]["gbit_per_s"], 0)
        self.assertGreater(prediction["network"]["latency_us"], 0)
        self.assertEqual([(row["ranks"], row["hosts"], row["extrapolation"]) for row in prediction["steps"]],
                         [(2, 2, False), (4, 4, True)])

    def test_wrong_use_is_a_sentence(self):
        for options, sentence in ((("--steps", "0"), "--steps"),
                                  (("--run-dir", "here"), "there is no option --run-dir"),
                                  (("--data", "--nproc", "2"), "--nproc excludes --data"),
                                  (("--data", "--steps", "2"), "--steps excludes --data"),
                                  (("--seconds", "2"), "--seconds requires --data"),
                                  (("--predict", "2,x"), '--predict 2,x: expected numbers of ranks from 1 to 1000000, found "x"'),
                                  (("--predict", "0"), "from 1 to 1000000"),
                                  (("--predict", "2:"), 'found ""'),
                                  (("--predict", "6:4"), "6 ranks are no multiple of the 4 that a host has"),
                                  (("--predict", "2"), "2 ranks are on 2 hosts, and the network between them is not known"),
                                  (("--network-gbps", "1"), "--network-gbps requires --predict"),
                                  (("--predict-batches", "8"), "--predict-batches requires --predict"),
                                  (("--predict", "1", "--predict-batches", "0"), "--predict-batches"),
                                  (("--predict", "1", "--predict-batches", "8", "--set", "data.global_batch=9"),
                                   "measures half of data.global_batch too, and 9 is no multiple of 2"),
                                  (("--predict", "2", "--latency-us", "1"), "--latency-us requires --network-gbps"),
                                  (("--predict", "2", "--network-gbps", "0"), "--network-gbps"),
                                  (("--data", "--predict", "2"), "--data excludes --predict"),
                                  (("--set", "data.train=unset"), "data.train")):
            told = self.bench(*options, code=2)
            self.assertIn(sentence, told.stderr)
            self.assertEqual(told.stdout, "")


if __name__ == "__main__":
    unittest.main()
