#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Manual pages and completions have every command and option that --help has, shells complete with them, and troff finds
nothing to warn of. LOCKSTEP_BINARY is the command."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

BINARY = os.environ["LOCKSTEP_BINARY"]
SHELLS = ("bash", "zsh", "fish")


def lockstep(*arguments):
    return subprocess.run([BINARY, *arguments], check=True, text=True, stdout=subprocess.PIPE).stdout


def commands():
    return re.findall(r"^  ([a-z-]+) ", lockstep("--help").split("Subcommands:")[1], re.MULTILINE)


def options(*command):
    lines = re.findall(r"^  (-\S+)", lockstep(*command, "--help"), re.MULTILINE)
    return [name for line in lines for name in line.split(",")]


def completed(script, *words):
    """What bash offers for the last of the words."""
    line = " ".join(f"'{word}'" for word in words)
    asked = f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _lockstep; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    out = subprocess.run(["bash", "--norc", "-c", asked], check=True, text=True, stdout=subprocess.PIPE).stdout
    return {word for word in out.splitlines() if word}


class Tables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.scripts = {}
        for shell in SHELLS:
            self.scripts[shell] = self.folder / f"completion.{shell}"
            self.scripts[shell].write_text(lockstep("completion", shell))

    def test_help_lists_what_is_looked_for(self):
        self.assertLessEqual({"init", "train", "eval", "completion", "man"}, set(commands()))
        self.assertLessEqual({"-h", "--help", "--set", "--resume", "--max-restarts"}, set(options("train")))

    def test_a_page_says_what_a_value_must_be(self):
        page = re.sub(r"\\f.|\\:|\\", "", lockstep("man", "train"))
        for entry in ("--hosts A:4,B:4\nThe hosts", "--nproc INT\nStart this many ranks, here or on --hosts. Must be in [1 -",
                      "--max-restarts INT\nStart again up to this often when a rank is lost. Must be 0 or more. Default: 0.",
                      "--device auto|cpu|cuda\n", "--resume auto|never|CHECKPOINT\n"):
            self.assertIn(entry, page)
        self.assertIn("Only with --input.", re.sub(r"\\", "", lockstep("man", "infer")))

    def test_a_page_has_every_option_of_its_command(self):
        for command in commands():
            page = lockstep("man", command).replace("\\-", "-")
            for name in options(command):
                self.assertRegex(page, rf"(?m)^\.TP\n.*\\fB{re.escape(name)}\\fR", f"{command} {name}")
        page = lockstep("man").replace("\\-", "-")
        for command in commands():
            self.assertIn(f"\\fBlockstep-{command}\\fR(1)", page)
        self.assertIn("\\fB--version\\fR", page)

    def test_all_pages_are_written_as_files(self):
        pages = self.folder / "pages"
        pages.mkdir()
        lockstep("man", "--all", str(pages))
        self.assertEqual({path.name for path in pages.iterdir()},
                         {"lockstep.1"} | {f"lockstep-{command}.1" for command in commands()})
        self.assertEqual((pages / "lockstep-train.1").read_text(), lockstep("man", "train"))

    def test_the_page_has_the_exit_codes_of_the_documentation(self):
        table = (pathlib.Path(__file__).resolve().parents[3] / "docs/command-line.md").read_text().split("## Exit codes")[1]
        codes = re.findall(r"^\| (\d+) \| (.*) \|$", table, re.MULTILINE)
        self.assertGreaterEqual(len(codes), 8)
        page = lockstep("man").split(".SH EXIT STATUS")[1].replace("\\-", "-")
        for code, meaning in codes:
            self.assertIn(f".TP\n{code}\n{meaning}.\n".lower(), page.lower())

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_troff_renders_the_pages_without_a_warning(self):
        for command in [[], *([command] for command in commands())]:
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-P-cbou"], input=lockstep("man", *command), text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)
            self.assertIn("EXIT STATUS", done.stdout)

    @unittest.skipUnless(shutil.which("man"), "man is not installed")
    def test_man_shows_a_page(self):
        page = self.folder / "lockstep-train.1"
        page.write_text(lockstep("man", "train"))
        done = subprocess.run(["man", "--warnings", "-l", str(page)], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env={**os.environ, "MANPAGER": "cat", "LC_ALL": "C.UTF-8"})
        self.assertEqual(done.stderr, "")
        self.assertIn("--max-restarts", done.stdout)

    def test_scripts_have_every_command_and_option(self):
        for shell, script in self.scripts.items():
            text = script.read_text()
            for command in commands():
                self.assertIn(command, text)
                for name in options(command):
                    name = name if shell != "fish" else re.sub("^--?", lambda dash: {1: "-s ", 2: "-l "}[len(dash[0])], name)
                    self.assertIn(name, text, f"{shell}: {command}")

    def test_bash_offers_commands_and_each_ones_options(self):
        script = self.scripts["bash"]
        self.assertEqual(completed(script, "lockstep", ""), set(commands()))
        self.assertEqual(completed(script, "lockstep", "in"), {"init", "infer", "inspect"})
        for command in commands():
            self.assertEqual(completed(script, "lockstep", command, "-"), set(options(command)))
        self.assertEqual(completed(script, "lockstep", "train", "a.pbtxt", "--ru"), {"--run-dir"})

    def test_bash_offers_values(self):
        script = self.scripts["bash"]
        self.assertEqual(completed(script, "lockstep", "train", "--device", ""), {"auto", "cpu", "cuda"})
        self.assertEqual(completed(script, "lockstep", "train", "--device", "=", "c"), {"cpu", "cuda"})
        self.assertEqual(completed(script, "lockstep", "completion", ""), set(SHELLS))
        self.assertEqual(completed(script, "lockstep", "launch", "k"), {"kubernetes"})
        self.assertIn("never", completed(script, "lockstep", "train", "--resume", "n"))
        self.assertEqual(completed(script, "lockstep", "train", "--nproc", ""), set())

    def test_bash_offers_jobs_and_folders(self):
        for name in ("a job.pbtxt", "other.txt"):
            (self.folder / name).write_text("")
        (self.folder / "runs").mkdir()
        here = f"{self.folder}/"
        self.assertEqual(completed(self.scripts["bash"], "lockstep", "train", here), {here + "a job.pbtxt", here + "runs"})
        self.assertEqual(completed(self.scripts["bash"], "lockstep", "launch", "slurm", here), {here + "a job.pbtxt", here + "runs"})
        self.assertEqual(completed(self.scripts["bash"], "lockstep", "train", "--run-dir", here), {here + "runs"})

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_reads_its_script(self):
        loads = f"autoload -Uz compinit && compinit -u -d {self.folder}/dump && source {self.scripts['zsh']} && " \
                "print ${_comps[lockstep]}"
        done = subprocess.run(["zsh", "-f", "-c", loads], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((done.stdout.strip(), done.stderr), ("_lockstep", ""))

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_offers_commands_options_and_values(self):
        def offered(line):
            out = subprocess.run(["fish", "--no-config", "-c", f"source {self.scripts['fish']}; complete -C '{line}'"],
                                 check=True, text=True, stdout=subprocess.PIPE).stdout
            return {word.split("\t")[0] for word in out.splitlines()}
        self.assertEqual({word for word in offered("lockstep ") if not word.startswith("-")}, set(commands()))
        for command in commands():
            self.assertLessEqual({name for name in options(command) if name.startswith("--")},
                                 offered(f"lockstep {command} --"))
        self.assertEqual(offered("lockstep train --device c"), {"cpu", "cuda"})


if __name__ == "__main__":
    unittest.main()
