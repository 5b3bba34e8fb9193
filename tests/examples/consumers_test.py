#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""consumer/ is built and run with find_package and with pkg-config against the install tree, and compiled with Lockstep as
a part of its build: arguments PREFIX COMPILER."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

COMPILER = sys.argv.pop()
PREFIX = pathlib.Path(sys.argv.pop())
ROOT = pathlib.Path(__file__).resolve().parents[2]
CONSUMER = ROOT / "tests/examples/consumer"
WARNINGS = "-Wall -Wextra -Werror"
VERSION = next(line.split()[2].strip('"') for line in (PREFIX / "include/lockstep/version.h").read_text().splitlines()
               if line.startswith("#define LOCKSTEP_VERSION "))


class Consumers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)

    def run_command(self, *command, succeeds=True):
        command = [str(word) for word in command]
        done = subprocess.run(command, cwd=self.build, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode == 0, succeeds, " ".join(command) + "\n" + done.stdout)
        return done.stdout

    def configure(self, *options):
        self.run_command("cmake", "-G", "Ninja", "-S", CONSUMER, "-B", self.build, f"-DCMAKE_CXX_COMPILER={COMPILER}",
                         f"-DCMAKE_CXX_FLAGS={WARNINGS}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *options)

    def expect_run(self):
        out = self.run_command(self.build / "consumer").split()
        self.assertEqual(out[:2], [VERSION, "1"])
        self.assertGreater(int(out[2]), 100)

    def include_paths(self):
        command = next(entry["command"] for entry in json.loads((self.build / "compile_commands.json").read_text())
                       if entry["file"] == str(CONSUMER / "main.cpp"))
        words = command.split()
        return {word[2:] for word in words if word.startswith("-I")} | \
            {after for word, after in zip(words, words[1:]) if word == "-isystem"}

    def test_finds_the_package(self):
        self.configure(f"-DCMAKE_PREFIX_PATH={PREFIX}")
        self.run_command("cmake", "--build", self.build)
        self.expect_run()
        ours = {path for path in self.include_paths() if path.startswith(str(PREFIX))}
        self.assertEqual(ours, {str(PREFIX / "include")})

    def test_asks_pkg_config(self):
        (folder,) = {path.parent for path in PREFIX.rglob("lockstep.pc")}
        asking = {**os.environ, "PKG_CONFIG_PATH": str(folder)}
        ask = lambda *what: subprocess.run(["pkg-config", *what, "lockstep"], env=asking, check=True, text=True,
                                           stdout=subprocess.PIPE).stdout.split()
        self.assertEqual(ask("--modversion"), [VERSION])
        self.run_command(COMPILER, "-std=c++20", *WARNINGS.split(), f"-I{CONSUMER}", CONSUMER / "main.cpp", "-o", "consumer",
                         *ask("--cflags", "--libs"))
        self.expect_run()

    def test_takes_the_sources_into_its_build(self):
        self.configure(f"-DLOCKSTEP_SOURCE={ROOT}", "-DLOCKSTEP_CUDA=OFF")
        self.run_command("cmake", "--build", self.build, "--target", "CMakeFiles/consumer.dir/main.cpp.o")
        self.assertFalse(self.include_paths() & {str(ROOT), str(self.build), str(self.build / "lockstep")})
        self.run_command("cmake", "--install", self.build, "--prefix", self.build / "prefix")
        self.assertFalse((self.build / "prefix").exists())

    def test_shared_libraries_are_refused(self):
        said = self.run_command("cmake", "-G", "Ninja", "-S", ROOT, "-B", self.build, "-DBUILD_SHARED_LIBS=ON",
                                f"-DCMAKE_CXX_COMPILER={COMPILER}", succeeds=False)
        self.assertIn("libraries are static: set BUILD_SHARED_LIBS to OFF", " ".join(said.split()))


if __name__ == "__main__":
    unittest.main()
