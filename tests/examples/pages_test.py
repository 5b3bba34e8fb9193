#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples stay short, and the loop that README.md and docs/cpp.md show is one of them, word for word."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def loop_of(page):
    """The first block of C++ on a page, without its indentation."""
    block = re.search(r"^```cpp\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)[1]
    return [line.strip() for line in block.splitlines() if line.strip()]


class Pages(unittest.TestCase):
    def test_show_the_loop_of_an_example(self):
        lines = [line.strip() for line in (ROOT / "examples/typical_loop.cpp").read_text().splitlines() if line.strip()]
        for page in ("README.md", "docs/cpp.md"):
            loop = loop_of(page)
            self.assertGreater(len(loop), 8, page)
            begin = lines.index(loop[0])
            self.assertEqual(lines[begin:begin + len(loop)], loop, page)

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
