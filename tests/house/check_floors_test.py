# SPDX-License-Identifier: Apache-2.0
"""scripts/check_floors finds what it promises to find: each test breaks one rule in a tree of its own."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).resolve().parents[2] / "scripts" / "check_floors"
LICENSE = "// SPDX-License-Identifier: Apache-2.0\n"
HEADER = LICENSE + "#pragma once\n"


def findings(files):
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        run = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True, check=False)
        lines = run.stdout.splitlines()
        if run.returncode == 0:
            assert lines == ["check_floors: no findings"], run
            return []
        assert run.returncode == 1 and not run.stderr, run
        return lines


class CheckFloors(unittest.TestCase):
    def expect_one(self, files, *parts):
        lines = findings(files)
        self.assertEqual(len(lines), 1, lines)
        for part in parts:
            self.assertIn(part, lines[0])

    def test_downwards_own_and_system_includes_pass(self):
        self.assertEqual([], findings({
            "runtime/ops/linear.cpp": LICENSE + '#include "runtime/ops/linear.h"\n\n#include <dnnl.hpp>\n'
                                                '#include "runtime/tensor/tensor.h"\n',
            "runtime/ops/linear.h": HEADER,
            "tests/runtime/ops/linear_test.cpp": LICENSE + '#include "launcher/main.h"\n',
        }))

    def test_an_include_from_a_higher_floor_is_found(self):
        self.expect_one({"runtime/tensor/tensor.cpp": LICENSE + '\n#include "runtime/train/trainer.h"\n'},
                        "runtime/tensor/tensor.cpp:3:", "floor 0", "floor 11")

    def test_a_room_within_a_room_has_a_floor_of_its_own(self):
        self.expect_one({"launcher/supervisor/launch.cpp": LICENSE + '#include "launcher/commands/rank.h"\n'},
                        "launcher/supervisor (floor 12) includes from launcher/commands (floor 13) above it")
        self.assertEqual([], findings({
            "launcher/main.cpp": LICENSE + '#include "launcher/commands/command_line.h"\n'}))

    def test_one_way_between_rooms_of_a_floor_passes(self):
        self.assertEqual([], findings({"comm/group/window.cpp": LICENSE + '#include "runtime/kernels/backend.h"\n'}))

    def test_a_cycle_between_rooms_of_a_floor_is_found_once(self):
        self.expect_one({"comm/ddp/reducer.cpp": LICENSE + '#include "runtime/optim/sgd.h"\n',
                         "runtime/optim/sgd.cpp": LICENSE + '#include "amp/grad_scaler/grad_scaler.h"\n',
                         "amp/grad_scaler/grad_scaler.cpp": LICENSE + '#include "comm/ddp/reducer.h"\n'},
                        "a cycle on floor 5:", "comm/ddp -> runtime/optim")

    CMAKE = "# SPDX-License-Identifier: Apache-2.0\n"

    def linked(self, links, **files):
        """A tree where nn is to link as given, and includes ops in a header, tensor in a source and kernels in both."""
        return {
            **{f"runtime/{name}/CMakeLists.txt": f"{self.CMAKE}lockstep_library({name})\n"
               for name in ("ops", "tensor", "kernels", "autograd")},
            "runtime/nn/CMakeLists.txt": f"{self.CMAKE}lockstep_library(nn {links})\n",
            "runtime/nn/module.h": HEADER + '#include "runtime/kernels/backend.h"\n#include "runtime/ops/linear.h"\n',
            "runtime/nn/module.cpp": LICENSE + '#include "runtime/kernels/backend.h"\n'
                                               '#include "runtime/tensor/tensor.h"\n',
        }

    def test_links_that_are_the_includes_pass(self):
        self.assertEqual([], findings(self.linked(
            "DEPS lockstep_kernels lockstep_ops ZLIB::ZLIB\n  PRIVATE_DEPS lockstep_tensor lockstep_nn_part")))

    def test_a_missing_link_is_found(self):
        self.expect_one(self.linked("DEPS lockstep_ops PRIVATE_DEPS lockstep_tensor"), "runtime/nn/CMakeLists.txt:2:",
                        "does not link to lockstep_kernels publicly", "runtime/nn/module.h:3")
        self.expect_one(self.linked("DEPS lockstep_ops lockstep_kernels"), "lockstep_tensor privately", "module.cpp:3")

    def test_a_link_without_an_include_is_found(self):
        self.expect_one(self.linked("DEPS lockstep_kernels lockstep_ops lockstep_autograd PRIVATE_DEPS lockstep_tensor"),
                        "links to lockstep_autograd publicly", "no header")
        self.expect_one(self.linked("DEPS lockstep_kernels lockstep_ops PRIVATE_DEPS lockstep_autograd lockstep_tensor"),
                        "links to lockstep_autograd privately", "no source")

    def test_a_public_link_for_a_source_alone_is_found(self):
        self.assertEqual(2, len(findings(self.linked("DEPS lockstep_kernels lockstep_ops lockstep_tensor"))))

    def test_links_of_cmakes_own_functions_are_read(self):
        self.expect_one({
            "runtime/tensor/CMakeLists.txt": self.CMAKE + "lockstep_library(tensor)\n",
            "launcher/CMakeLists.txt": self.CMAKE + "target_link_libraries(lockstep_launcher PUBLIC CLI11::CLI11\n"
                                                    "                      PRIVATE lockstep_tensor)\n",
            "launcher/main.cpp": LICENSE,
        }, "launcher/CMakeLists.txt:2:", "links to lockstep_tensor privately")

    def test_a_folder_without_a_floor_is_found(self):
        self.expect_one({"runtime/misc/helpers.cpp": LICENSE}, "runtime/misc/helpers.cpp:1:", "no floor")

    def test_an_include_from_the_tests_is_found(self):
        self.expect_one({"runtime/nn/module.cpp": LICENSE + '#include "tests/nn/fixture.h"\n'}, "lies in no room")

    def test_an_include_that_is_no_path_from_the_root_is_found(self):
        self.expect_one({"runtime/nn/module.cpp": LICENSE + '#include "module.h"\n'}, "not a path")

    def test_a_missing_license_line_is_found(self):
        self.expect_one({"runtime/nn/module.cpp": "int x;\n"}, "SPDX")
        self.expect_one({"runtime/nn/CMakeLists.txt": "project(x)\n"}, "SPDX")
        self.expect_one({"scripts/run": "#!/bin/sh\necho\n"}, "SPDX")

    def test_a_header_without_pragma_once_is_found(self):
        self.expect_one({"runtime/nn/module.h": LICENSE}, "#pragma once")

    def test_conditional_compilation_is_found(self):
        for line in ("#ifdef X", "#if defined(X)", "# ifndef X", "#elif X"):
            self.expect_one({"runtime/nn/module.cpp": f"{LICENSE}{line}\n"}, "module.cpp:2:", "conditional compilation")

    def test_a_signal_by_process_id_is_found(self):
        for line in ("kill(pid, SIGKILL);", "  if (pid) ::kill(pid, 9);", "killpg (group, 9);", "syscall(SYS_tgkill, a, b, 9);"):
            self.expect_one({"launcher/main.cpp": f"{LICENSE}{line}\n"}, "launcher/main.cpp:2:", "a signal by process id")
        for line in ("os.kill(pid, 9)", "from os import kill; kill(pid, 9)", "signal.pidfd_send_signal(fd, 9)"):
            self.expect_one({"tests/run.py": f"# {LICENSE[3:]}{line}\n"}, "tests/run.py:2:", "a signal by process id")
            self.expect_one({"scripts/run": f"#!/usr/bin/env python3\n# {LICENSE[3:]}{line}\n"}, "scripts/run:3:")
        for line in ("kill -9 $pid", "wait; kill $pid", "true && pkill x", "if x; then killall x; fi"):
            self.expect_one({"scripts/run": f"#!/bin/sh\n# {LICENSE[3:]}{line}\n"}, "scripts/run:3:", "a signal by process id")

    def test_signals_that_are_checked_pass(self):
        self.assertEqual([], findings({
            "runtime/base/process.cpp": LICENSE + "::kill(pid, 0);\n",
            "launcher/main.cpp": LICENSE + "fault.kill(); run->kill(1); watch.kill_all(); signal_child(pid, 9);\n",
            "tests/run.py": f"# {LICENSE[3:]}live.process.kill()\n\ndef kill(self, *ranks):\n    pass\n",
            "scripts/run": f"#!/bin/sh\n# {LICENSE[3:]}echo --kill them # kill all\n",
        }))

    def test_mpi_outside_its_room_is_found(self):
        for line in ("MPI_Comm comm;", "#include <mpi.h>", "  MPI_Barrier(comm);", "#include <pmix.h>",
                     "PMIx_Init(nullptr, nullptr, 0);", "pmix_proc_t own;"):
            self.expect_one({"comm/group/world.cpp": f"{LICENSE}{line}\n"}, "world.cpp:2:", "outside comm/group/mpi/")
        self.assertEqual([], findings({"comm/group/mpi/mpi_comm.cpp": LICENSE + "#include <mpi.h>\nMPI_Comm comm;\n",
                                       "comm/group/world.cpp": LICENSE + "// before MPI_Init\n",
                                       "tests/support/mpi_main.cpp": LICENSE + "#include <mpi.h>\n"}))

    def test_a_message_in_the_core_is_found(self):
        include = '#include "configs/job.pb.h"\n'
        self.expect_one({"runtime/optim/sgd.h": HEADER + include}, "sgd.h:3:", "take an options struct")
        self.expect_one({"amp/grad_scaler/a.cpp": LICENSE + include}, "a.cpp:2:", "take an options struct")
        self.assertEqual([], findings({"runtime/job/job.h": HEADER + include, "launcher/main.cpp": LICENSE + include,
                                       "tests/runtime/job/job_test.cpp": LICENSE + include}))

    def test_printing_outside_the_command_is_found(self):
        for line in ('std::fprintf(stderr, "no");', 'printf("no");', 'std::cerr << "no";', 'std::puts("no");'):
            self.expect_one({"runtime/nn/module.cpp": f"{LICENSE}{line}\n"}, "module.cpp:2:", "prints nothing")
        self.assertEqual([], findings({"launcher/main.cpp": LICENSE + 'std::printf("yes");\n',
                                       "runtime/train/record/terminal.cpp": LICENSE + 'std::fputs(text, stream);\n',
                                       "runtime/nn/module.cpp": LICENSE + 'std::snprintf(text, 9, "%d", n);  // printf()\n',
                                       "tests/nn_test.cpp": LICENSE + 'printf("yes");\n'}))

    def test_a_path_of_one_machine_is_found(self):
        path = "/".join(("", "home", "me", "data"))
        self.expect_one({"README.md": f"Copy it to {path}.\n"}, "README.md:1:", "a path of one machine")

    def test_unfinished_work_is_found(self):
        for word in ("TO" + "DO", "FIX" + "ME"):
            self.expect_one({"runtime/nn/module.cpp": f"{LICENSE}// {word}: more\n"}, "unfinished")


if __name__ == "__main__":
    unittest.main()
