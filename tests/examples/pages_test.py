#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples stay short, and the loops that pages show are theirs, word for word."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def lines_of(text):
    """Without indentation and empty lines."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def loops_of(page):
    """The blocks of C++ on a page."""
    return map(lines_of, re.findall(r"^```cpp\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE))


class Pages(unittest.TestCase):
    def show(self, page, loop, example):
        lines = lines_of((ROOT / f"examples/{example}.cpp").read_text())
        self.assertGreater(len(loop), 8, page)
        self.assertIn(loop, [lines[begin:begin + len(loop)] for begin in range(len(lines))], page)

    def test_show_the_loop_of_an_example(self):
        for page in ("README.md", "docs/cpp.md"):
            self.show(page, next(loops_of(page)), "typical_loop")

    def test_show_the_loops_beside_scripts_for_pytorch(self):
        page = "docs/from-pytorch.md"
        for loop, example in zip(loops_of(page), ("accumulate_and_clip", "save_and_resume", "trainer"), strict=True):
            self.show(page, loop, example)

    def test_examples_are_short(self):
        for example in sorted((ROOT / "examples").glob("*.cpp")):
            self.assertLessEqual(len(example.read_text().splitlines()), 60, example.name)

    def test_every_example_is_listed_and_built(self):
        page = (ROOT / "docs/cpp.md").read_text()
        built = re.search(r"foreach\(example (.*?)\)", (ROOT / "examples/CMakeLists.txt").read_text(), re.DOTALL)[1].split()
        examples = sorted(path.stem for path in (ROOT / "examples").glob("*.cpp"))
        self.assertEqual(sorted(built), examples)
        for example in examples:
            self.assertIn(f"(../examples/{example}.cpp)", page)


if __name__ == "__main__":
    unittest.main()
