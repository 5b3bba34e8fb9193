# SPDX-License-Identifier: Apache-2.0
"""scripts/check_includes finds what a source leans on its neighbours for, in a tree of its own."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).resolve().parents[2] / "scripts" / "check_includes"
SHAPE = """#include <vector>

namespace lockstep {

class Shape {
};

constexpr int kMost = 3;
int volume(const Shape& shape);

}
"""


def findings(source, **more):
    with tempfile.TemporaryDirectory() as root:
        for name, text in {"runtime/shape.h": SHAPE, "runtime/use.cpp": source, **more}.items():
            path = Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        run = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True, check=False)
        lines = run.stdout.splitlines()
        assert run.returncode == (len(lines) > 1) and not run.stderr, run
        return lines[:-1]


class CheckIncludes(unittest.TestCase):
    def test_what_is_included_is_no_finding(self):
        use = "int most = volume(Shape()) + kMost;\nstd::vector<int> all;\n"
        self.assertEqual([], findings('#include "runtime/shape.h"\n' + use))

    def test_what_another_header_includes_is_no_finding(self):
        self.assertEqual([], findings('#include "runtime/other.h"\n\nShape shape;\n',
                                      **{"runtime/other.h": '#include "runtime/shape.h"\n'}))

    def test_types_constants_and_functions_are_found(self):
        for use, name in (("Shape shape;", "Shape"), ("int most = kMost;", "kMost"), ("int n = volume(x);", "volume")):
            with self.subTest(use):
                self.assertEqual([f"runtime/use.cpp:2: {name} is declared in runtime/shape.h, which the file does not "
                                  "include"], findings("\n" + use + "\n"))

    def test_a_forward_declaration_suffices_where_the_type_need_not_be_whole(self):
        forward = {"runtime/names.h": "class Shape;\n"}
        for use, needs_whole in (("void f(const Shape& shape);", False), ("Shape* shape = nullptr;", False),
                                 ("const Shape kShape{1};", True), ("int n = Shape::least();", True),
                                 ("f(Shape{});", True), ("f(Shape());", True)):
            with self.subTest(use):
                self.assertEqual(needs_whole, bool(findings('#include "runtime/names.h"\n' + use + "\n", **forward)))

    def test_names_of_the_standard_library_and_of_others_are_found(self):
        self.assertEqual(["runtime/use.cpp:1: std::vector is declared in <vector>, which the file does not include",
                          "runtime/use.cpp:1: fmt:: is declared in <fmt/...>, which the file does not include"],
                         findings("std::vector<int> all = read(fmt::format(1));\n"))

    def test_own_names_members_and_comments_are_no_findings(self):
        for use in ("class Shape;", "enum class Kind { kLeast, kMost };", "int n = cube.volume(x);", "// a Shape",
                    'const char* name = "Shape";', "TEST(Volumes, Shape) {}"):
            with self.subTest(use):
                self.assertEqual([], findings(use + "\n"))


if __name__ == "__main__":
    unittest.main()
