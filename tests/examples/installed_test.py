#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The installed pages lead to files that are there, ready jobs train from where they lie, and manual pages and completions
are those of the installed command: argument PREFIX."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PREFIX = pathlib.Path(sys.argv.pop())
COMMAND = PREFIX / "bin/lockstep"
DOC = PREFIX / "share/doc/lockstep"


def output(*arguments, **options):
    return subprocess.run([COMMAND, *arguments], check=True, text=True, stdout=subprocess.PIPE, **options).stdout


class Installed(unittest.TestCase):
    def test_pages_lead_to_files(self):
        pages = list(DOC.rglob("*.md"))
        self.assertGreater(len(pages), 20)
        for page in pages:
            text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
            for target in re.findall(r"\]\(([^)#]+)", text):
                if not re.match(r"[a-z]+:", target):
                    self.assertTrue((page.parent / target).exists(), f"{page}: {target}")

    def test_pages_keep_the_words_of_links_to_sources(self):
        text = (DOC / "docs/README.md").read_text()
        self.assertIn("To build, test and write code: CONTRIBUTING.md.", text)
        self.assertIn("[cpp.md](cpp.md)", text)
        self.assertIn("(train-your-own-data.md#the-mean-of-the-weights)", (DOC / "docs/command-line.md").read_text())

    def test_a_ready_job_trains_by_the_path_of_the_pages(self):
        with tempfile.TemporaryDirectory() as folder:
            job = str(DOC / "configs/digits_mlp.pbtxt")
            output("train", job, "--device", "cpu", "--set", "train.steps=3", "--set", "schedule=unset", cwd=folder)
            self.assertTrue((pathlib.Path(folder) / "runs/digits_mlp/summary.json").exists())

    def test_pages_and_completions_are_those_of_the_command(self):
        share = PREFIX / "share"
        self.assertEqual((share / "man/man1/lockstep.1").read_text(), output("man"))
        self.assertEqual((share / "man/man1/lockstep-train.1").read_text(), output("man", "train"))
        for shell, path in (("bash", "bash-completion/completions/lockstep"), ("zsh", "zsh/*/_lockstep"),
                            ("fish", "fish/vendor_completions.d/lockstep.fish")):
            (script,) = share.glob(path)
            self.assertEqual(script.read_text(), output("completion", shell))


if __name__ == "__main__":
    unittest.main()
