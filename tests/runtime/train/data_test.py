# SPDX-License-Identifier: Apache-2.0
"""Runs on users' own files: on several ranks, resumed in mid-epoch, and refused where the files do not fit."""
import json
import struct
import subprocess
import time
import unittest
import zlib

from runs import LOCKSTEP, SAVE_ALWAYS, RunTest, npy, require_mpi

SAMPLES = 50  # of which a step takes 8: an epoch ends within the seventh
STEPS = 12

JOB = """
seed: 5
model {{ mlp {{ hidden: 16 }} }}
data {{ global_batch: 8 train {{ {data} }} {rest} }}
optimizer {{ sgd {{ lr: 0.05 momentum: 0.9 }} }}
train {{ steps: %d }}
""" % STEPS


def png(width, height, pixel):
    """`pixel` gives the red, green and blue at (x, y)."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    rows = b"".join(b"\0" + b"".join(bytes(pixel(x, y)) for x in range(width)) for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


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

    def expect_bits(self, job):
        """Two ranks resume to the bits of a run that never stopped, and draw what one rank draws."""
        whole = self.train("whole", *SAVE_ALWAYS, job=job, ranks=2)
        losses = whole.column("loss")
        self.assertLess(sum(losses[STEPS // 2:]), sum(losses[:STEPS // 2]))
        for step in (3, 7):
            rest = self.train(f"from-{step}", *SAVE_ALWAYS, job=job, ranks=2, resume=whole.checkpoint(step))
            self.assertEqual(rest.digest, whole.digest)
            self.assertNotIn("changed", rest.output)
        self.assert_close(self.train("one", job=job).column("loss"), whole.column("loss"), 5e-5)

    def test_two_ranks_train_on_arrays(self):
        self.expect_bits(self.arrays())

    def test_two_ranks_train_on_a_table(self):
        self.expect_bits(self.table())

    def test_two_ranks_train_on_images(self):
        self.expect_bits(self.images())

    def test_data_that_changed_are_named_on_resume(self):
        job = self.table()
        self.train("run", "train.steps=4", job=job)
        time.sleep(0.01)
        text = (self.folder / "t.csv").read_text(encoding="utf-8")
        self.write("t.csv", text.replace("0,a", "1,a", 1))
        rest = self.train("run", "train.steps=6", job=job)
        self.assertIn(f"the data changed: {self.folder}/t.csv: its first bytes differ", rest.output)
        self.write("t.csv", text + "1,a,0.5\n")
        rest = self.train("run", "train.steps=8", job=job)
        self.assertIn(f"the data changed: {self.folder}/t.csv: {len(text)} -> {len(text) + 8} bytes", rest.output)

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

    def test_ranks_that_see_other_data_are_refused_at_once(self):
        require_mpi()
        lines = [f"{i % 7},{i % 3}" for i in range(SAMPLES)]
        for rank, count in ((0, SAMPLES), (1, SAMPLES - 1)):
            self.write(f"rank{rank}/t.csv", "u,kind\n" + "\n".join(lines[:count]) + "\n")
        job = self.job('csv { files: "/proc/self/cwd/t.csv" classes: 3 }')
        train = [LOCKSTEP, "train", str(job), "--run-dir", str(self.folder / "run"), "--device", "cpu"]
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
        for rank in (0, 1):
            command += [":"] * rank + ["-n", "1", "--wdir", str(self.folder / f"rank{rank}"), *train]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(run.returncode, 2, run.stdout)
        self.assertIn("rank 1 sees other data than rank 0: 49 samples", run.stdout)

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
