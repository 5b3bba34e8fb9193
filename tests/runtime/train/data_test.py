# SPDX-License-Identifier: Apache-2.0
"""Runs on users' own files: on several ranks, resumed in mid-epoch, and refused where the files do not fit."""
import gzip
import io
import json
import os
import re
import shutil
import struct
import subprocess
import tarfile
import unittest

from runs import HAS_MPI, LOCKSTEP, SAVE_ALWAYS, RunTest, mpirun_of, npy, png, read_npy, require_mpi

SAMPLES = 50  # of which a step takes 8: an epoch ends within the seventh
STEPS = 12

JOB = """
seed: 5
model {{ mlp {{ hidden: 16 }} }}
data {{ global_batch: 8 train {{ {data} }} {rest} }}
optimizer {{ sgd {{ lr: 0.05 momentum: 0.9 }} }}
train {{ steps: %d }}
""" % STEPS

# At a rate of 0.05 a last bit that sends an activation across 0 grows a hundredfold within five steps.
VOLUMES_JOB = """
seed: 5
model { unet3d { levels: 2 channels: 4 } }
data { global_batch: 8 train { volumes { images: "images" masks: "masks" } } augment { patch: [8, 8, 8] mirror: true } }
optimizer { sgd { lr: 0.02 momentum: 0.9 } }
amp { opt_level: O0 dtype: FP32 }
train { steps: %d }
""" % STEPS


def nifti(extents, values):
    """int16 of these extents, x first, that stand for half of what is stored."""
    header = bytearray(352)
    struct.pack_into(">i", header, 0, 348)
    struct.pack_into(">8h", header, 40, len(extents), *extents, *[1] * (7 - len(extents)))
    struct.pack_into(">2h", header, 70, 4, 16)
    struct.pack_into(">3f", header, 108, 352, 0.5, 0)
    header[344:347] = b"n+1"
    return bytes(header) + struct.pack(f">{len(values)}h", *values)


class OwnFiles(RunTest):
    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def job(self, data, rest=""):
        return self.write("job.pbtxt", JOB.format(data=data, rest=rest))

    def arrays(self):
        labels = [i * 7 % 3 for i in range(SAMPLES)]
        features = [(i * j) % 11 / 10 + label for i, label in enumerate(labels) for j in range(6)]
        self.write("x.npy", npy(">f4", (SAMPLES, 3, 2), struct.pack(f">{len(features)}f", *features)))
        self.write("y.npy", npy("|u1", (SAMPLES,), bytes(labels)))
        return self.job('arrays { features: "x.npy" targets: "y.npy" }')

    def test_arrays_that_look_channels_first_are_named(self):
        job = self.arrays()
        convnet = ("--set", "model={convnet{block{channels:4}}}")
        for extents, settings, warned in (((3, 20, 20), convnet, True), ((20, 20, 3), convnet, False),
                                          ((3, 20, 20), (), False)):
            with self.subTest(extents=extents, settings=settings):
                self.write("x.npy", npy("|u1", (SAMPLES, *extents), bytes(SAMPLES * 1200)))
                told = subprocess.run([LOCKSTEP, "validate", str(job), *settings], capture_output=True, text=True, check=False)
                self.assertEqual(told.returncode, 0, told.stderr)
                self.assertEqual("have channels first, as it looks" in told.stderr, warned, told.stderr)

    def table(self):
        lines = [f"{i % 7},{'abc'[i * 7 % 3]},{i * 7 % 3 + i % 5 / 10}" for i in range(SAMPLES)]
        self.write("t.csv", "u,kind,v\n" + "\n".join(lines) + "\n")
        return self.job('csv { files: "t.csv" target: "kind" }')

    def images(self):
        for i in range(SAMPLES):
            label = i % 2
            self.write(f"images/{'ab'[label]}/{i:02}.png",
                       png(20 + i % 3, 24, lambda x, y: (10 * x % 256, (10 * y + i) % 256, 200 * label)))
        return self.job('image_folder { folder: "images" size: 8 }',
                        "augment { random_resized_crop {} flip: true color_jitter { brightness: 0.3 hue: 0.1 } }")

    def shards(self, files=3):
        """As webdataset's TarWriter writes them: pax headers that hold a fraction of a second."""
        for number in range(files):
            with tarfile.open(self.folder / f"t-{number:03}.tar", "w", format=tarfile.PAX_FORMAT) as tar:
                for i in range(number * SAMPLES // files, (number + 1) * SAMPLES // files):
                    label = i % 2
                    image = png(20 + i % 3, 24, lambda x, y: (10 * x % 256, (10 * y + i) % 256, 200 * label))
                    for extension, content in (("cls", str(label).encode()), ("png", image)):
                        member = tarfile.TarInfo(f"{i:06}.{extension}")
                        member.size, member.mtime = len(content), 1350244992.25
                        tar.addfile(member, io.BytesIO(content))
        return self.job('shards { files: "t-{000..%03d}.tar" size: 8 }' % (files - 1),
                        "augment { random_resized_crop {} flip: true color_jitter { brightness: 0.3 hue: 0.1 } }")

    def volumes(self):
        """Boxes of 2 in noise of 0 and 1, in volumes of several extents."""
        for i in range(SAMPLES // 2):
            extents = (8 + i % 3, 9 + i % 2, 8)
            places = [(x, y, z) for z in range(extents[2]) for y in range(extents[1]) for x in range(extents[0])]
            mask = [int(max(abs(x - 4), abs(y - 4), abs(z - 4 + i % 2)) <= 2) for x, y, z in places]
            image = [2 * (2 * inside + (x * 7 + y * 3 + z + i) % 2) for inside, (x, y, z) in zip(mask, places)]
            self.write(f"images/{i:02}.nii.gz", gzip.compress(nifti(extents, image), mtime=0))
            self.write(f"masks/{i:02}.nii.gz", gzip.compress(nifti(extents, [2 * inside for inside in mask]), mtime=0))
        return self.write("job.pbtxt", VOLUMES_JOB)

    def expect_bits(self, job):
        """Two ranks resume to the bits of a run that never stopped, and draw what one rank and three draw."""
        whole = self.train("whole", *SAVE_ALWAYS, job=job, ranks=2)
        losses = whole.column("loss")
        self.assertLess(sum(losses[STEPS // 2:]), sum(losses[:STEPS // 2]))
        for step in (3, 7):
            rest = self.train(f"from-{step}", *SAVE_ALWAYS, job=job, ranks=2, resume=whole.checkpoint(step))
            self.assertEqual(rest.digest, whole.digest)
            self.assertNotIn("changed", rest.output)
        for ranks in (1, 3):
            self.assert_close(self.train(f"of-{ranks}", job=job, ranks=ranks).column("loss"), losses, 5e-5)

    def test_two_ranks_train_on_arrays(self):
        self.expect_bits(self.arrays())

    def test_two_ranks_train_on_a_table(self):
        self.expect_bits(self.table())

    def test_two_ranks_train_on_images(self):
        self.expect_bits(self.images())

    def test_two_ranks_train_on_shards(self):
        self.expect_bits(self.shards())

    def test_two_ranks_train_on_patches_of_volumes(self):
        self.expect_bits(self.volumes())

    def test_shards_hold_what_a_folder_holds(self):
        losses = self.train("shards", job=self.shards()).column("loss")
        # A folder is sorted by classes, and shards are not: the order of samples differs, and the classes do not.
        self.assertEqual(len(losses), STEPS)
        self.assert_close(losses, self.train("one-shard", job=self.shards(files=1)).column("loss"), 0)

    def test_damaged_samples_are_skipped_alike_on_any_number_of_ranks(self):
        job = self.images()
        for number in (7, 8, 31):
            self.write(f"images/{'ab'[number % 2]}/{number:02}.png", b"\x89PNG damaged")
        skip = ("data.on_error=SKIP", *SAVE_ALWAYS)
        one = self.train("one", *skip, job=job)
        for number in (7, 8, 31):
            name = f"{number:02}.png (sample"
            self.assertEqual(one.output.count(name), 1, one.output)
        self.assertEqual(one.summary["skipped_samples"], one.column("skipped_samples")[-1])
        self.assertGreaterEqual(one.summary["skipped_samples"], 3)
        for ranks in (2, 3):
            several = self.train(f"of-{ranks}", *skip, job=job, ranks=ranks)
            self.assertEqual(several.column("skipped_samples"), one.column("skipped_samples"))
            self.assert_close(several.column("loss"), one.column("loss"), 5e-5)
        rest = self.train("rest", *skip, job=job, resume=one.checkpoint(5))
        self.assertEqual(rest.digest, one.digest)
        self.assertEqual(rest.column("skipped_samples"), one.column("skipped_samples")[5:])

    def test_a_damaged_sample_is_named_once_whichever_ranks_meet_it(self):
        job = self.images()
        for number in (7, 8, 31):
            self.write(f"images/{'ab'[number % 2]}/{number:02}.png", b"\x89PNG damaged")
        # Several epochs, in which the ranks' shares differ, and several evaluations.
        evaluation = ('data.eval={image_folder{folder:"%s/images" size:8}}' % self.folder, "data.eval_batch=11",
                      "train.eval_every=10", "train.steps=40", "data.max_skipped=10")
        for ranks in (1, 2, 3):
            run = self.train(f"of-{ranks}", "data.on_error=SKIP", *evaluation, job=job, ranks=ranks)
            for number in (7, 8, 31):
                named = re.findall(rf"warning: sample \d+ is skipped: .*/{number:02}\.png", run.output)
                self.assertEqual(len(named), 2, f"once to train and once to evaluate\n{run.output}")

    def test_too_many_damaged_samples_end_the_run_on_every_rank_at_one_step(self):
        job = self.images()
        for number in (7, 8, 31):
            self.write(f"images/{'ab'[number % 2]}/{number:02}.png", b"\x89PNG damaged")
        steps = []
        for ranks in (1, 2, 3):
            run = self.train(f"of-{ranks}", "data.on_error=SKIP", "data.max_skipped=2", job=job, ranks=ranks, code=4)
            self.assertIn("more than 2 samples of epoch 0 could not be read", run.output)
            steps.append(run.summary["step"])
        self.assertEqual(steps, steps[:1] * 3)

    def test_the_number_of_decode_threads_changes_no_bit(self):
        job = self.images()
        evaluation = ('data.eval={image_folder{folder:"%s/images" size:8}}' % self.folder, "data.eval_batch=11",
                      "train.eval_every=5")
        ways = (("data.prefetch=0",), ("data.decode_threads=1",), ("data.decode_threads=3",))
        runs = [self.train(way[0], *way, *evaluation, job=job) for way in ways]
        for run in runs[1:]:
            self.assertEqual(run.digest, runs[0].digest)
            self.assertEqual(run.summary["eval"], runs[0].summary["eval"])
        self.assertIn("queue_depth_p50", runs[0].summary)
        self.assertEqual(len(runs[0].column("queue_depth")), STEPS)

    def test_bench_measures_the_training_data(self):
        run = subprocess.run([LOCKSTEP, "bench", "--data", self.images(), "--seconds", "0.05", "--json", "--set",
                              "data.decode_threads=2"], capture_output=True, text=True, check=True)
        result = json.loads(run.stdout)
        self.assertEqual((result["samples"], result["batch"]), (SAMPLES, 8))
        self.assertEqual([speed["threads"] for speed in result["speeds"]], [1, 2])
        self.assertTrue(all(speed["samples_per_core_s"] > 0 for speed in result["speeds"]))

    def test_data_that_changed_are_named_on_resume(self):
        job = self.table()
        table = self.folder / "t.csv"
        self.train("run", "train.steps=4", job=job)
        text = table.read_text(encoding="utf-8")

        def resume(steps, content):
            written = os.stat(table).st_mtime_ns
            self.write("t.csv", content)
            os.utime(table, ns=(written, written))
            return self.train("run", f"train.steps={steps}", job=job).output
        self.assertIn("the data changed: data.train: content differs\n", resume(6, text.replace("0,a", "1,a", 1)))
        self.assertIn("the data changed: data.train: labels differ\n", resume(8, text.replace("0,a", "0,b", 1)))
        self.assertIn("the data changed: data.train: 50 samples of [2], 3 classes -> 51 samples of [2], 3 classes\n",
                      resume(10, text + "1,a,0.5\n"))

    def test_evaluation_data_that_changed_are_named_on_resume(self):
        job = self.table()
        self.write("e.csv", "u,kind,v\n1,a,0.5\n2,b,0.25\n")
        evaluation = 'data.eval={csv{files:"e.csv" target:"kind"}}'
        self.train("run", "train.steps=4", evaluation, job=job)
        self.write("e.csv", "u,kind,v\n1,b,0.5\n2,b,0.25\n")
        rest = self.train("run", "train.steps=6", evaluation, job=job)
        self.assertIn("the data changed: data.eval: labels differ\n", rest.output)
        self.assertEqual(rest.output.count("the data changed"), 1)

    def test_a_copy_of_the_data_is_the_same_on_resume(self):
        job = self.images()
        self.train("run", "train.steps=4", job=job)
        shutil.copytree(self.folder / "images", self.folder / "copy")
        shutil.rmtree(self.folder / "images")
        (self.folder / "copy").rename(self.folder / "images")
        for path in (self.folder / "images").rglob("*"):
            os.utime(path, (1, 1))
        self.assertNotIn("changed", self.train("run", job=job).output.replace("the job changed: train.steps", ""))

    def validate(self, job):
        run = subprocess.run([LOCKSTEP, "validate", job], capture_output=True, text=True, check=False)
        return run.returncode, run.stdout + run.stderr

    def test_a_sound_job_is_described(self):
        code, output = self.validate(self.table())
        self.assertEqual(code, 0, output)
        self.assertIn("50 samples", output)

    def test_what_is_wrong_with_a_file_is_named_at_its_field(self):
        job = self.arrays()
        self.write("y.npy", npy("|u1", (SAMPLES - 1,), bytes(SAMPLES - 1)))
        code, output = self.validate(job)
        self.assertEqual(code, 4, output)
        self.assertIn("holds 50 samples, but", output)
        self.write("y.npy", b"no array")
        code, output = self.validate(job)
        self.assertEqual(code, 4, output)
        self.assertIn("job.pbtxt:4", output)
        self.assertIn("data.train.arrays.targets: ", output)
        self.assertIn("is no .npy file", output)

    def test_a_bad_sample_ends_the_run_with_its_name(self):
        job = self.images()
        self.write("images/b/49.png", b"\x89PNG damaged")
        run = self.train("run", job=job, code=4)
        self.assertIn("images/b/49.png (sample 49): cannot be decoded", run.output)
        self.assertIn("data { on_error: SKIP } leaves out samples that cannot be read", run.output)

    def predicted(self, job, name, *options, code=0):
        """What infer says of the training data, and the bytes that it writes."""
        command = [LOCKSTEP, "infer", str(job), "--checkpoint", str(self.folder / "run"), "--data", "train", "--device", "cpu",
                   "--set", "data.eval_batch=7", "--out", str(self.folder / name), *options]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout, (self.folder / name).read_bytes() if code == 0 else b""

    def test_a_data_set_is_predicted_past_damaged_samples(self):
        job = self.images()
        self.train("run", job=job)
        _, whole = self.predicted(job, "whole.csv")
        damaged = (7, 31)
        for number in damaged:
            self.write(f"images/{'ab'[number % 2]}/{number:02}.png", b"\x89PNG damaged")
        said, _ = self.predicted(job, "none.csv", code=4)
        self.assertRegex(said, r"images/b/\d\d\.png \(sample \d+\): cannot be decoded")
        self.assertIn("data { on_error: SKIP }", said)
        skip = ("--set", "data.on_error=SKIP")
        said, rows = self.predicted(job, "rows.csv", *skip)
        self.assertIn(f"2 of {SAMPLES} samples could not be read", said)
        self.assertIn("unread      2 of them", said)
        empty = [row for row in rows.decode().splitlines() if ",," in row]
        self.assertEqual(len(empty), 2)
        for row in empty:
            self.assertRegex(row, r"^\d+,+$")
            self.assertRegex(said, rf"warning: sample {row.split(',')[0]} is not read: .*\.png")
        kept = [row for row in whole.decode().splitlines() if row.split(",")[0] not in {row.split(",")[0] for row in empty}]
        self.assertEqual([row for row in rows.decode().splitlines() if row not in empty], kept)
        for ranks in (2, 3) if HAS_MPI else ():
            self.assertEqual(self.predicted(job, f"{ranks}.csv", *skip, "--nproc", str(ranks))[1], rows)
        _, lines = self.predicted(job, "rows.jsonl", *skip)
        self.assertEqual(2, sum("error" in json.loads(line) for line in lines.decode().splitlines()))
        result, _ = self.predicted(job, "rows.npy", *skip, "--json")
        self.assertEqual(2, json.loads(re.search(r"^{.*}$", result, re.MULTILINE)[0])["unread"])
        numbers = read_npy(self.folder / "rows.npy")[2]
        classes = len(numbers) // SAMPLES
        self.assertEqual(2 * classes, sum(number != number for number in numbers))

    def refused(self, job, ranks, command="train"):
        """What is said of a run of which each rank works in a folder of its own."""
        require_mpi()
        run = [LOCKSTEP, command, str(job), "--device", "cpu"]
        run += ["--run-dir", str(self.folder / "run")] if command == "train" else ["--checkpoint",
                                                                                   str(self.folder / "run")]
        started = mpirun_of(*(["env", "-C", str(self.folder / f"rank{rank}"), *run] for rank in range(ranks)))
        done = subprocess.run(started, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stdout)
        # A rank that ends first may end the others before they have recorded anything.
        metrics = self.folder / "run/metrics.jsonl"
        if command == "train" and metrics.exists():
            self.assertNotIn("loss", metrics.read_text())
        return done.stdout

    def test_ranks_that_see_other_tables_are_refused_before_the_first_step(self):
        lines = [f"{i % 7},{i % 3}" for i in range(SAMPLES)]
        job = self.job('csv { files: "/proc/self/cwd/t.csv" classes: 3 }')

        def say(ranks, odd, table):
            for rank in range(ranks):
                self.write(f"rank{rank}/t.csv", "u,kind\n" + "\n".join(table if rank == odd else lines) + "\n")
            return self.refused(job, ranks)
        fewer = say(2, 1, lines[:-1])
        self.assertIn("the ranks see different data:\n", fewer)
        self.assertIn("data.train: 50 samples of [1], 3 classes (rank 0) / 49 samples of [1], 3 classes (rank 1)\n",
                      fewer)
        reversed_labels = [f"{i % 7},{2 - i % 3}" for i in range(SAMPLES)]
        self.assertIn("data.train: labels differ: rank 0 / rank 1\n", say(2, 1, reversed_labels))
        self.assertIn("data.train: labels of rank 0 differ from those of ranks 1, 2\n", say(3, 0, reversed_labels))
        other = [f"{i % 7 + 1},{i % 3}" for i in range(SAMPLES)]
        self.assertIn("data.train: contents of rank 2 differ from those of ranks 0, 1\n", say(3, 2, other))

    def test_ranks_that_see_other_images_are_refused_before_the_first_step(self):
        self.images()
        job = self.job('image_folder { folder: "/proc/self/cwd/images" size: 8 }',
                       'eval { image_folder { folder: "/proc/self/cwd/eval" size: 8 } }')
        for rank in (0, 1):
            shutil.copytree(self.folder / "images", self.folder / f"rank{rank}/images")
            shutil.copytree(self.folder / "images", self.folder / f"rank{rank}/eval")
        for path in (self.folder / "rank1/images").rglob("*.png"):
            path.write_bytes(png(20, 24, lambda x, y: (0, 0, 0)))
        self.assertIn("data.train: contents differ: rank 0 / rank 1\n", self.refused(job, 2))
        shutil.rmtree(self.folder / "rank1/images")
        shutil.copytree(self.folder / "images", self.folder / "rank1/images")
        for label in "ab":
            (self.folder / f"rank1/eval/{label}").rename(self.folder / f"rank1/eval/{label}2")
        for label, other in ("ab", "ba"):
            (self.folder / f"rank1/eval/{label}2").rename(self.folder / f"rank1/eval/{other}")
        said = self.refused(job, 2)
        self.assertIn("data.eval: contents differ: rank 0 / rank 1\n", said)
        self.assertNotIn("data.train", said)

    def test_ranks_that_evaluate_other_data_are_refused(self):
        for rank in (0, 1):
            self.write(f"rank{rank}/t.csv", "u,kind\n" + "".join(f"{i % 7},{i % 3}\n" for i in range(SAMPLES)))
            self.write(f"rank{rank}/e.csv", "u,kind\n" + "".join(f"{i % 7},{(i + rank) % 3}\n" for i in range(9)))
        data = 'csv { files: "/proc/self/cwd/%s.csv" classes: 3 }'
        job = self.job(data % "t", "eval { " + data % "e" + " }")
        self.write("e.csv", "u,kind\n1,1\n")
        here = self.write("here.pbtxt", job.read_text().replace("/proc/self/cwd/", f"{self.folder}/rank0/"))
        self.train("run", job=here)
        for command in ("eval", "infer"):
            self.assertIn("data.eval: labels differ: rank 0 / rank 1\n", self.refused(job, 2, command))

    def test_an_evaluation_set_that_lacks_a_class_is_answered_by_the_trained_model(self):
        data = "synthetic { samples: 40 shape: 8 classes: %d }"
        job = self.job(data % 10, "eval { " + data % 9 + " }")
        run = self.train("run", job=job)
        command = [str(job), "--device", "cpu", "--checkpoint", str(run.directory), "--json"]
        for verb in ("eval", "infer"):
            done = subprocess.run([LOCKSTEP, verb, *command], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["accuracy"], run.summary["eval"]["accuracy"])


if __name__ == "__main__":
    unittest.main()
