# SPDX-License-Identifier: Apache-2.0
"""scripts/check_docs finds what it promises to find: each test breaks one rule in a tree of its own."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).resolve().parents[2] / "scripts" / "check_docs"
TREE = {
    "README.md": "# House\n\n[pages](docs/README.md), [a part](docs/page.md#the-second-part), [up](#house)\n",
    "docs/README.md": "[page](page.md) [variables](environment.md)\n",
    "docs/page.md": "# Page\n\n## The `second` part\n\n```\n[no link](in-code.md)\n# no heading\n```\n\n`[nor](this.md)`\n",
    "docs/environment.md": "| name |\n|---|\n| `LOCKSTEP_SPEED`, `TERM` |\n\n`NCCL_*` belongs to others.\n",
    "runtime/speed.cpp": 'const char* text = std::getenv("LOCKSTEP_SPEED");\nstd::getenv("TERM");\n',
}


def findings(changes):
    with tempfile.TemporaryDirectory() as root:
        for name, text in {**TREE, **changes}.items():
            path = Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        run = subprocess.run([sys.executable, "-B", CHECK, root], capture_output=True, text=True, check=False)
        lines = run.stdout.splitlines()
        if run.returncode == 0:
            assert lines == ["check_docs: no findings"], run
            return []
        assert run.returncode == 1 and not run.stderr, run
        return lines


class CheckDocs(unittest.TestCase):
    def expect_one(self, changes, *parts):
        lines = findings(changes)
        self.assertEqual(len(lines), 1, lines)
        for part in parts:
            self.assertIn(part, lines[0])

    def added(self, page, text):
        return {page: TREE[page] + text}

    def test_a_sound_tree_passes(self):
        self.assertEqual([], findings({}))

    def test_a_link_to_a_missing_file_is_found(self):
        self.expect_one(self.added("docs/page.md", "\n[gone](gone.md)\n"), "docs/page.md:12:", "leads to nothing: gone.md")
        self.expect_one(self.added("docs/page.md", "\n![picture](a/b.png)\n"), "a/b.png")
        self.expect_one(self.added("docs/page.md", "\n[name]: gone.md\n"), "docs/page.md:12:", "gone.md")
        self.expect_one(self.added("README.md", "[out](../other/README.md)\n"), "README.md:4:", "leads to nothing")
        self.expect_one({"CONTRIBUTING.md": "[empty]()\n"}, "CONTRIBUTING.md:1:", "leads to nothing")

    def test_a_link_to_a_missing_heading_is_found(self):
        for target in ("docs/page.md#third-part", "docs/page.md#The-second-part", "#no-heading", "docs/page.md#no-heading"):
            self.expect_one(self.added("README.md", f"[part]({target})\n"), "README.md:4:", "no such heading", target)

    def test_anchors_are_those_of_github(self):
        heading = "## What's new, in [C++](page.md) & _more_? (2)\n## Same\n## Same\n"
        links = "[a](page.md#whats-new-in-c--_more_-2) [b](page.md#same) [c](page.md#same-1)\n"
        self.assertEqual([], findings({**self.added("docs/page.md", heading), **self.added("docs/README.md", links)}))
        self.expect_one({**self.added("docs/page.md", heading), **self.added("docs/README.md", "[d](page.md#same-2)\n")},
                        "no such heading")

    def test_a_web_address_that_is_none_is_found(self):
        for address in ("https://", "http:/example.org", "https://nowhere", "htp://example.org", "https://[::1"):
            self.expect_one(self.added("README.md", f"[web]({address})\n"), "README.md:4:", address)
        self.assertEqual([], findings(self.added("README.md", "[web](https://example.org/a#b) <https://example.org>\n")))

    def test_a_long_readme_is_found(self):
        self.assertEqual([], findings({"README.md": "line\n" * 90}))
        self.expect_one({"README.md": "line\n" * 91}, "README.md:91:", "more than 90 lines")

    def test_a_page_that_the_index_forgets_is_found(self):
        self.expect_one({"docs/new.md": "# New\n"}, "docs/new.md:1:", "does not link")

    def test_a_variable_that_the_page_forgets_is_found(self):
        for name, text in (("comm/a.cpp", 'getenv("LOCKSTEP_NEW")'), ("launcher/a.cpp", '{"SLURM_NEW", text}'),
                           ("scripts/build", "#!/bin/sh\nx=${LOCKSTEP_NEW:-1}"),
                           ("scripts/cmake/a.cmake", "set(x $ENV{LOCKSTEP_NEW})"),
                           ("scripts/tool", '#!/usr/bin/env python3\nos.environ["LOCKSTEP_NEW"]')):
            self.expect_one({name: text + "\n"}, f"{name}:", "does not name", "_NEW")

    def test_a_variable_is_reported_once_and_only_where_it_is_read(self):
        self.expect_one({"comm/a.cpp": 'getenv("LOCKSTEP_NEW");\ngetenv("LOCKSTEP_NEW");\n'}, "comm/a.cpp:1:")
        self.assertEqual([], findings({"comm/a.cpp": 'f(LOCKSTEP_VERSION); getenv("NCCL_DEBUG"); g("ERROR");\n',
                                       "tests/a.cpp": 'getenv("LOCKSTEP_OF_TESTS")\n'}))

    def test_a_variable_that_nothing_reads_is_found(self):
        for name in ("LOCKSTEP_OLD", "OMP_OLD"):
            page = TREE["docs/environment.md"].replace("`TERM`", f"`TERM`, `{name}`")
            self.expect_one({"docs/environment.md": page}, "docs/environment.md:3:", f"no source reads {name}")
        # A name that stands in the sources for something else is not read.
        page = TREE["docs/environment.md"].replace("`TERM`", "`TERM`, `LOCKSTEP_VERSION`")
        self.expect_one({"docs/environment.md": page, "comm/a.cpp": "f(LOCKSTEP_VERSION);\n"}, "LOCKSTEP_VERSION")


if __name__ == "__main__":
    unittest.main()
