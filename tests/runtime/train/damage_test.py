# SPDX-License-Identifier: Apache-2.0
"""Damaged checkpoints, wrong data, a full disk, a directory in use: named, and survived where that is possible."""
import gzip
import resource
import shutil
import unittest

from runs import CONFIGS, Run, RunTest, SAVE_ALWAYS, faults


def truncate(checkpoint):
    path = checkpoint / "tensors.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def flip_a_bit_of_a_tensor(checkpoint):
    path = checkpoint / "tensors.safetensors"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def flip_a_bit_of_the_state(checkpoint):
    path = checkpoint / "state.pb"
    content = bytearray(path.read_bytes())
    content[10] ^= 1
    path.write_bytes(content)


def remove_the_manifest(checkpoint):
    (checkpoint / "manifest.json").unlink()


DAMAGES = (truncate, flip_a_bit_of_a_tensor, flip_a_bit_of_the_state, remove_the_manifest)
SAVING = ("train.steps=8", "checkpoint.every_steps=2", "checkpoint.keep=0")


class Checkpoints(RunTest):
    def copy(self, run, name):
        shutil.copytree(run.directory, self.folder / name)
        return self.folder / name / "checkpoints"

    def test_the_one_before_a_damaged_newest_is_taken_and_named(self):
        whole = self.train("whole", *SAVING)
        for damage in DAMAGES:
            with self.subTest(damage.__name__):
                checkpoints = self.copy(whole, damage.__name__)
                damage(checkpoints / "step-00000008")
                damage(checkpoints / "step-00000006")
                run = self.train(damage.__name__, *SAVING)
                for step in (8, 6):
                    self.assertRegex(run.output, f"step-0000000{step}.*step-00000004 is taken instead")
                self.assertEqual(run.digest, whole.digest)
                self.assertEqual(run.column("step"), list(range(1, 9)))
                # What was damaged has been replaced.
                self.assertEqual(run.tensors(6), whole.tensors(6))

    def test_every_rank_falls_back_alike(self):
        whole = self.train("whole", *SAVING, ranks=2)
        flip_a_bit_of_a_tensor(whole.checkpoint(8))
        again = self.train("whole", *SAVING, "comm.digest_every=1", ranks=2)
        self.assertRegex(again.output, "step-00000008.*step-00000006 is taken instead")
        self.assertEqual(again.digest, whole.digest)

    def test_all_damaged_ends_the_run_and_names_them(self):
        run = self.train("run", *SAVING)
        for checkpoint, damage in zip(run.checkpoints, DAMAGES):
            damage(checkpoint)
        again = self.train("run", *SAVING, ranks=2, code=4)
        for checkpoint in run.checkpoints:
            self.assertIn(checkpoint.name, again.output)

    def test_a_model_that_does_not_fit_is_refused_with_every_name(self):
        run = self.train("run", *SAVING)
        blocks = "model.convnet.block=[{channels:32}, {channels:48 stride:2}, {channels:8}]"
        again = self.train("run", *SAVING, blocks, ranks=2, code=2)
        for name in ("model/block1_conv.weight", "model/block2_conv.weight", "model/classifier.weight",
                     "optimizer/momentum/block1_norm.bias", "statistics/block2_norm.running"):
            self.assertIn(name, again.output)
        self.assertNotIn("block0_conv", again.output)
        self.assertEqual(run.summary["steps"], 8)

    def test_another_optimizer_is_refused(self):
        self.train("run", *SAVING)
        again = self.train("run", *SAVING, "optimizer={adamw{lr:1e-3}}", code=2)
        self.assertRegex(again.output, "saved with optimizer sgd, the job names adamw")

    def test_a_run_of_another_job_is_called_that(self):
        self.train("run", *SAVING)
        other = self.train("run", "train.steps=8", job=CONFIGS / "digits_mlp.pbtxt", ranks=2, code=2)
        self.assertRegex(other.output, r'was saved by another job, "digits_convnet" with model convnet, and this one is '
                                       r'"digits_mlp" with model mlp')
        self.assertNotIn("missing:", other.output)
        self.assertNotIn("optimizer", other.output)

    def test_what_changed_in_the_job_is_named_value_by_value(self):
        self.train("run", *SAVING)
        again = self.train("run", *SAVING, "train.steps=9", "schedule={constant{warmup_steps:2}}")
        changes = [line for line in again.output.splitlines() if "the job changed" in line]
        self.assertEqual(changes, ["  the job changed: schedule.constant.warmup_steps: (unset) -> 2",
                                   "  the job changed: schedule.cosine.final_fraction: 0 -> (unset)",
                                   "  the job changed: schedule.cosine.warmup_steps: 50 -> (unset)",
                                   "  the job changed: train.steps: 8 -> 9"])

    def test_a_checkpoint_that_is_not_there_is_refused(self):
        self.train("run", "train.steps=2", resume=self.folder / "nowhere", code=4)

    def test_a_disk_that_takes_no_more_leaves_the_last_checkpoint_whole(self):
        # A limit on the size of a file refuses the weights, as a full disk would.
        settings = ("train.steps=6", "checkpoint.every_steps=3", "checkpoint.keep=0")
        whole = self.train("whole", *settings)
        shutil.copytree(whole.directory, self.folder / "full")
        shutil.rmtree(self.folder / "full" / "checkpoints" / "step-00000006")
        full = self.train("full", *settings, code=4, limit=(resource.RLIMIT_FSIZE, 100_000))
        self.assertRegex(full.output, r"tensors\.safetensors.*File too large")
        self.assertEqual([path.name for path in (full.directory / "checkpoints").iterdir()], ["step-00000003"])
        self.assertEqual(self.train("full", *settings).digest, whole.digest)


class RunDirectory(RunTest):
    def test_never_resuming_keeps_the_earlier_run(self):
        first = self.train("run", *SAVING)
        again = self.train("run", *SAVING, "seed=7", resume="never")
        self.assertEqual(again.column("step"), list(range(1, 9)))
        self.assertNotEqual(again.digest, Run(self.folder / "run" / "earlier-1").digest)
        self.assertEqual(len(Run(self.folder / "run" / "earlier-1").checkpoints), len(first.checkpoints))

    def test_another_continuation_from_a_checkpoint_does_not_mix_with_the_first(self):
        self.train("run", *SAVING)
        other = (*SAVING, "optimizer.sgd.lr=0.05")
        branch = self.train("run", *other, resume=self.folder / "run" / "checkpoints" / "step-00000004")
        self.assertEqual(branch.column("step"), list(range(1, 9)))
        self.assertEqual([path.name[-1] for path in branch.checkpoints], ["2", "4", "6", "8"])
        earlier = Run(self.folder / "run" / "earlier-1")
        self.assertEqual([path.name[-1] for path in earlier.checkpoints], ["6", "8"])
        self.assertNotEqual(branch.tensors(6), earlier.tensors(6))
        # Resuming takes the branch, not what was newest before.
        resumed = self.train("run", *other, "train.steps=9", "checkpoint.every_steps=1")
        self.assertEqual(resumed.checkpoint(8), resumed.checkpoints[-2])
        self.assertEqual(resumed.tensors(8), branch.tensors(8))

    def test_a_resume_that_is_refused_changes_nothing(self):
        run = self.train("run", *SAVING)
        files = lambda: {path: path.read_bytes() for path in sorted(run.directory.rglob("*")) if path.is_file()}
        before = files()
        for wrong in ("optimizer={adam{lr:1e-3}}", "model.convnet.block[0].channels=16", "seed=7"):
            self.train("run", *SAVING, wrong, code=2, resume=run.checkpoint(4))
            self.train("run", *SAVING, wrong, "train.steps=9", code=2)
        self.assertEqual(files(), before)

    def test_another_seed_is_refused_within_an_epoch_and_taken_between_two(self):
        settings = ("data.global_batch=750", "train.steps=3", *SAVE_ALWAYS)
        run = self.train("run", *settings)
        refused = self.train("within", *settings, "seed=7", resume=run.checkpoint(1), code=2)
        self.assertIn("--set seed=42", refused.output)
        self.assertEqual(self.train("between", *settings, "seed=7", resume=run.checkpoint(2)).column("step"), [3])

    def test_a_finished_run_has_nothing_left_to_do(self):
        first = self.train("run", *SAVING)
        summary = first.summary
        again = self.train("run", *SAVING)
        self.assertEqual(again.summary, summary)
        self.assertEqual(again.column("step"), list(range(1, 9)))

    def test_two_runs_in_one_directory_are_refused(self):
        # The second one waits 10 s for the first, which would compute all the while.
        waits = [text for step in range(3, 40) for text in ("delay", f"step:{step} milliseconds:500 phase:FORWARD")]
        first = self.start("run", *SAVING, "train.steps=100000", faults(*waits))
        first.wait_for_step(2)
        second = self.train("run", *SAVING, code=2)
        who = rf"another run is training in .*: process {first.process.pid} on \S+ since \d{{4}}-\d\d-\d\d [\d:]+ UTC"
        self.assertRegex(second.output, who + "; waiting up to 10 s for its end\n")
        self.assertRegex(second.output, r"error \(usage, exit 2\)\n  " + who + "\n")
        self.assertEqual(second.output.count("waiting"), 1)
        first.process.terminate()
        self.assertEqual(first.finish().code, 75)


class Inputs(RunTest):
    def test_evaluation_data_that_do_not_fit(self):
        job = CONFIGS / "synthetic_mlp.pbtxt"
        for wrong, message in (("shape:9 classes:4", "data.eval: its samples are"),
                               ("shape:8 classes:5", "data.eval: its classes are 5"),
                               ("shape:8 target_size:2", "data.eval: its classes are 0")):
            data = "data={train{synthetic{samples:64 shape:8 classes:4}} global_batch:16 eval{synthetic{samples:8 %s}}}"
            run = self.train("run", data % wrong, "model={mlp{hidden:8}}", "train.loss=CROSS_ENTROPY", job=job, code=2)
            self.assertIn(message, run.output)
            self.assertEqual(run.steps, [])

    def test_a_model_with_fewer_outputs_than_classes(self):
        run = self.train("run", "model={mlp{hidden:8 outputs:3}}", code=2, job=CONFIGS / "synthetic_mlp.pbtxt")
        self.assertIn("model.mlp.outputs: 3 are fewer", run.output)

    def test_a_fault_on_a_rank_that_there_is_not(self):
        run = self.train("run", faults("overflow", "step:2 rank:7"), ranks=2, code=2)
        self.assertIn("fault[0].overflow.rank: there is no rank 7 among 2", run.output)

    def test_a_wrong_job(self):
        run = self.train("run", "train.stepz=3", "model.convnet.dropout=2", code=2)
        self.assertIn("stepz", run.output)
        self.assertIn("model.convnet.dropout", run.output)

    def test_a_job_file_that_is_not_there(self):
        run = self.train("run", job=self.folder / "nowhere.pbtxt", code=2)
        self.assertIn("nowhere.pbtxt", run.output)

    def with_images(self, content):
        path = self.folder / "images"
        path.write_bytes(content)
        for ranks in (1, 2):
            run = self.train("run", "train.steps=2", f"data.train.idx.images={path}", ranks=ranks, code=4)
            self.assertIn(str(path), run.output)
        return run

    def images(self):
        return gzip.decompress((CONFIGS / "data/digits/train-images-idx3-ubyte.gz").read_bytes())

    def test_a_data_file_that_is_not_there(self):
        missing = self.folder / "nothing"
        run = self.train("run", "train.steps=2", f"data.train.idx.images={missing}", code=2)
        self.assertIn(str(missing), run.output)

    def test_a_data_file_with_another_magic_number(self):
        self.with_images(b"\x00\x00\x0d\x03" + self.images()[4:])

    def test_a_short_data_file(self):
        self.with_images(self.images()[:5000])

    def test_more_images_than_labels(self):
        self.with_images(b"\x00\x00\x08\x03\x00\x00\x00\x02" + self.images()[8:16] + bytes(128))


if __name__ == "__main__":
    unittest.main()
