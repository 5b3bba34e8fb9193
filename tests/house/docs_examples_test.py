# SPDX-License-Identifier: Apache-2.0
"""The examples of the pages do what the pages say: jobs are sound and train, options and fields exist."""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCKSTEP = os.environ["LOCKSTEP_BINARY"]


def blocks(page, language):
    """The blocks of code in the language; "" for those of none."""
    found = []
    inside = None
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            inside = line[3:] if inside is None else None
            if inside == language:
                found.append("")
        elif inside == language:
            found[-1] += line + "\n"
    return found


def pages():
    return ["README.md", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").glob("*.md")))]


def lockstep(folder, *arguments):
    return subprocess.run([LOCKSTEP, *arguments], cwd=folder, capture_output=True, text=True, check=False)


class Examples(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def expect_done(self, *arguments):
        run = lockstep(self.folder, *arguments)
        self.assertEqual(0, run.returncode, f"{arguments}\n{run.stdout}{run.stderr}")
        return run.stdout

    def job_of(self, page):
        jobs = blocks(page, "prototext")
        self.assertEqual(1, len(jobs))
        (self.folder / "job.pbtxt").write_text(jobs[0], encoding="utf-8")

    def test_the_job_of_the_readme_trains(self):
        self.job_of("README.md")
        (self.folder / "data").symlink_to(ROOT / "configs" / "data")
        self.assertNotIn("warning", self.expect_done("validate", "job.pbtxt"))
        self.expect_done("train", "job.pbtxt", "--set", "train.steps=2")
        self.assertIn("accuracy", self.expect_done("eval", "job.pbtxt"))

    def test_the_job_beside_a_script_for_pytorch_trains(self):
        self.job_of("docs/from-pytorch.md")
        (self.folder / "data").symlink_to(ROOT / "configs" / "data")
        self.assertNotIn("warning", self.expect_done("validate", "job.pbtxt"))
        self.expect_done("train", "job.pbtxt", "--set", "train.steps=2")
        self.expect_done("train", "job.pbtxt", "--set", "train.steps=3")
        lines = (self.folder / "runs/digits/metrics.jsonl").read_text(encoding="utf-8").splitlines()
        self.assertIn("resumed", [json.loads(line).get("event") for line in lines])

    def test_scripts_for_pytorch_are_python(self):
        scripts = blocks("docs/from-pytorch.md", "python")
        self.assertEqual(2, len(scripts))
        for script in scripts:
            compile(script, "docs/from-pytorch.md", "exec")

    def test_fields_beside_pytorch_are_those_of_a_job(self):
        """Each `message { ... }` and each `path.of.a.field` of the page's tables."""
        table = "".join(line for line in (ROOT / "docs/from-pytorch.md").read_text(encoding="utf-8").splitlines(True)
                        if line.startswith("| "))
        parts = "(?:amp|checkpoint|comm|data|optimizer|schedule|train)"
        messages = set(re.findall(rf"`({parts} \{{[^`]*\}})`", table))
        paths = set(re.findall(rf"`({parts}(?:\.\w+)+)(?:: [^`]*)?`", table))
        self.assertGreater(len(messages), 6)
        self.assertGreater(len(paths), 10)
        job = ROOT / "configs/digits_convnet.pbtxt"
        for message in messages - {"optimizer { sgd {} }"}:  # which lacks its rate
            run = lockstep(self.folder, "validate", job, "--set", message.replace(" ", "=", 1), "--set", "train.steps=600",
                           "--set", "train.eval_every=100")
            self.assertEqual(0, run.returncode, f"{message}\n{run.stdout}{run.stderr}")
        for path in paths:
            self.assertNotIn(" field ", lockstep(self.folder, "validate", job, "--set", f"{path}=unset").stderr, path)

    def test_own_data_are_written_and_learned(self):
        page = "docs/train-your-own-data.md"
        self.job_of(page)
        program = next(block for block in blocks(page, "python") if "write_idx" in block)
        subprocess.run([sys.executable, "-c", program], cwd=self.folder, check=True)
        self.assertIn("400 samples of [8,8,1] in 2 classes", self.expect_done("validate", "job.pbtxt"))
        self.expect_done("train", "job.pbtxt")
        accuracy = re.search(r"accuracy\s+([\d.]+) %", self.expect_done("eval", "job.pbtxt"))
        self.assertGreater(float(accuracy[1]), 90)

    def walk(self, at):
        """Runs the number `at` of the walks of docs/train-your-own-data.md; the output of its commands, each by its word."""
        page = "docs/train-your-own-data.md"
        subprocess.run([sys.executable, "-c", blocks(page, "python")[at]], cwd=self.folder, check=True)
        commands = [block for block in blocks(page, "") if block.startswith("lockstep init")][at]
        found = {}
        for line in commands.splitlines():
            _, word, *options = shlex.split(line, comments=True)
            found[word] = self.expect_done(word, *options)
        return found

    def test_the_walk_through_images(self):
        found = self.walk(0)
        self.assertIn("120 samples of [24,24,3] in 2 classes", found["validate"])
        self.assertGreater(float(re.search(r"accuracy\s+([\d.]+) %", found["eval"])[1]), 90)
        self.assertEqual(41, len((self.folder / "predictions.csv").read_text(encoding="utf-8").splitlines()))
        self.assertIn("<svg", (self.folder / "confusion.svg").read_text(encoding="utf-8"))

    def test_the_walk_through_arrays(self):
        found = self.walk(1)
        self.assertGreater(float(re.search(r"accuracy\s+([\d.]+) %", found["eval"])[1]), 85)
        self.assertTrue((self.folder / "probabilities.npy").exists())

    def test_the_walk_through_a_text(self):
        self.assertIn("one two three four five", self.walk(2)["infer"])

    def test_the_walk_through_a_table(self):
        found = self.walk(3)
        rmse, baseline = map(float, re.search(r"rmse +([\d.]+) \(baseline ([\d.]+)\)", found["eval"]).groups())
        self.assertLess(rmse, baseline / 2)
        prices = [float(line.split(",")[2])
                  for line in (self.folder / "prices.csv").read_text(encoding="utf-8").splitlines()[1:]]
        for price, expected in zip(prices, (360_000, 240_000, 120_000), strict=True):
            self.assertLess(abs(price - expected), 60_000)

    def test_the_walk_through_scans(self):
        dice = re.search(r"dice +([\d.]+) %", self.walk(4)["eval"])
        self.assertGreater(float(dice[1]), 80)
        self.assertEqual(["8.nii.gz", "9.nii.gz"], sorted(path.name for path in (self.folder / "masks").iterdir()))

    def test_a_sweep_that_halves_its_runs(self):
        (self.folder / "digits.pbtxt").write_text((ROOT / "configs/digits_convnet.pbtxt").read_text(encoding="utf-8"), encoding="utf-8")
        (self.folder / "data").symlink_to(ROOT / "configs" / "data")
        command = next(block for block in blocks("docs/compare-runs.md", "") if "--halving" in block)
        told = self.expect_done(*shlex.split(command)[1:], "--device", "cpu")
        for step, left, runs in ((100, 3, 5), (200, 2, 3), (400, 1, 2)):
            self.assertRegex(told, rf"(?m)^at step {step} {left} of {runs} runs goe?s? on, by eval\.accuracy ")
        self.assertEqual(1, told.count(" 600/600 "))

    def test_jobs_stand_where_a_test_trains_them(self):
        self.assertEqual(["README.md", "docs/from-pytorch.md", "docs/train-your-own-data.md"],
                         [page for page in pages() if blocks(page, "prototext")])

    @staticmethod
    def kinds_of(message):
        """Those that a job can name in a message's oneof."""
        schema = (ROOT / "configs/job.proto").read_text(encoding="utf-8")
        alternatives = re.search(rf"^message {message} {{[^\n]*\n  oneof kind {{\n(.*?)\n  }}", schema,
                                 re.DOTALL | re.MULTILINE)
        return re.findall(r"^ +\w+ (\w+) = ", alternatives[1], re.MULTILINE)

    def test_the_reference_calls_required_what_validate_requires(self):
        """Jobs that leave out all they may, with each choice taken once."""
        jobs = ["", "model {} data {} optimizer {} fault {}",
                "model { mlp {} } data { train {} } optimizer { sgd {} group {} } schedule { step {} } fault { kill {} }",
                "model { convnet { block {} } }",
                *(f"model {{ {kind} {{}} }}" for kind in self.kinds_of("Model")),
                *(f"optimizer {{ {kind} {{}} }}" for kind in self.kinds_of("Optimizer")),
                *(f"model {{ mlp {{}} }} data {{ train {{ {kind} {{}} }} }}" for kind in self.kinds_of("Dataset")),
                "model { registered { options {} } } data { train { registered { options {} } } } "
                "schedule { registered { options {} } }",
                "init_from {} train { early_stopping {} registered_loss { options {} } }",
                "model { resnet {} } data { train { synthetic {} } eval {} } fault { delay { phase: INIT } }"]
        asked = set()
        for job in jobs:
            (self.folder / "job.pbtxt").write_text(job, encoding="utf-8")
            for found in json.loads(lockstep(self.folder, "validate", "job.pbtxt", "--json").stdout)["diagnostics"]:
                if found["message"].startswith("is required"):
                    asked.add(re.sub(r"\[\d+\]", "[i]", found["path"]))
        documented = set()
        paths = []
        for line in (ROOT / "docs/job.md").read_text(encoding="utf-8").splitlines():
            if line.startswith("Path: "):
                paths = re.findall(r"`([^`]+)`", line.split(". ")[0]) or [""]
            elif match := re.match(r"\| `(\w+)` \| .* \| required[^|]*\|", line):
                documented |= {f"{path}.{match[1]}".lstrip(".") for path in paths}
        # The jobs take one of the paths that share a message.
        same = {"data.eval": "data.train", **{f"fault[i].{kind}": "fault[i].kill"
                                              for kind in ("overflow", "nan", "stop", "delay", "bit_flip")}}
        for path, taken in same.items():
            documented = {re.sub(rf"^{re.escape(path)}\.", f"{taken}.", name) for name in documented}
        # train is required for what is required in it; a choice has no field of its own, as steps or epochs.
        self.assertEqual(asked - {"fault[i]", "data.eval", "train.steps"}, documented - {"train"})

    def test_the_prediction_of_a_step_has_a_row_for_each_number_of_ranks(self):
        command = next(block for block in blocks("docs/performance.md", "") if block.startswith("lockstep bench"))
        (self.folder / "configs").symlink_to(ROOT / "configs")
        told = self.expect_done(*shlex.split(command)[1:], "--device", "cpu", "--steps", "3")
        table = told[told.index("\nprediction"):]
        self.assertEqual(["2", "8", "64", "1000"], re.findall(r"^ *(\d+) .*extrapolation$", table, re.MULTILINE))

    def test_every_command_is_one_that_lockstep_takes(self):
        """By lockstep validate, on a ready job: nothing is started."""
        commands = []
        for page in pages():
            for block in blocks(page, ""):
                for line in block.splitlines():
                    if line.startswith("lockstep train ") and "[" not in line.split("--set")[0]:
                        commands.append((page, shlex.split(line, comments=True)))
        self.assertGreater(len(commands), 10)
        for page, (_, _, _, *options) in commands:
            ready = "digits_mlp" if "model.mlp" in " ".join(options) else "digits_convnet"
            # validate takes all options of train but these.
            for option in {"--max-restarts", "--on-event", "--trace", "--until"} & set(options):
                at = options.index(option)
                del options[at : at + 2]
            # This machine has other networks than the page's hosts.
            if "--interface" in options:
                options[options.index("--interface") + 1] = "lo"
            run = lockstep(self.folder, "validate", ROOT / "configs" / f"{ready}.pbtxt", *options)
            self.assertEqual(0, run.returncode, f"{page}: {options}\n{run.stdout}{run.stderr}")

    def test_every_file_for_another_system_is_written(self):
        (self.folder / "configs").symlink_to(ROOT / "configs")
        found = [shlex.split(line, comments=True) for page in pages() for block in blocks(page, "")
                 for line in block.splitlines() if line.startswith("lockstep launch ") and " TARGET " not in line]
        self.assertEqual({"slurm", "kubernetes", "compose"}, {words[2] for words in found})
        for number, (_, _, target, _, *options) in enumerate(found):
            # Two examples may name one file.
            if "--out" in options:
                options[options.index("--out") + 1] = f"file-{number}"
            self.assertIn("next" if "--out" in options else "#!", self.expect_done("launch", target, "configs/digits_convnet.pbtxt", *options))


if __name__ == "__main__":
    unittest.main()
