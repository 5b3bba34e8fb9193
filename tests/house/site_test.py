# SPDX-License-Identifier: Apache-2.0
"""scripts/site makes pages that lead to one another, hold the words that a search looks for, and need no network."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

TREE = Path(__file__).resolve().parents[2]
SITE = TREE / "scripts/site"


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.ids = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids.add(found.get("id"))
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in ("script", "img") and found.get("src"):
            self.loads.append(found["src"])
        if tag == "link" and found.get("rel") != "canonical":
            self.loads.append(found["href"])


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        built = subprocess.run([sys.executable, "-B", SITE, "--out", folder.name], capture_output=True, text=True, check=False)
        assert built.returncode == 0 and not built.stderr, built
        cls.html = Path(folder.name, "html")
        cls.pages = {path: Page(path) for path in cls.html.rglob("*.html")}

    def test_every_page_of_the_documentation_is_there(self):
        for page in (TREE / "docs").rglob("*.md"):
            name = page.relative_to(TREE).with_suffix(".html").as_posix().replace("README.html", "index.html")
            self.assertTrue((self.html / name) in self.pages, name)

    def test_every_link_leads_to_a_page_and_a_heading(self):
        count = 0
        for path, page in self.pages.items():
            for link in page.links:
                address, _, anchor = link.partition("#")
                if re.match("[a-z]+:", link) or path.name == "404.html":
                    continue
                there = Path(os.path.normpath(path.parent / unquote(address))) if address else path
                there = there / "index.html" if there.is_dir() else there
                self.assertTrue(there.is_file(), f"{path}: {link}")
                if anchor:
                    self.assertIn(unquote(anchor), self.pages[there].ids, f"{path}: {link}")
                count += 1
        self.assertGreater(count, 1000)

    def test_nothing_is_loaded_from_elsewhere(self):
        for path, page in self.pages.items():
            self.assertEqual([load for load in page.loads if "//" in load], [], path)

    def test_a_search_finds_words(self):
        index = json.loads((self.html / "search/search_index.json").read_text(encoding="utf-8"))
        self.assertTrue(any("bucket_mb" in entry["text"] for entry in index["docs"]))


if __name__ == "__main__":
    if not shutil.which("mkdocs"):
        print("skipped: mkdocs is not installed: scripts/setup site")
        sys.exit(77)
    unittest.main()
