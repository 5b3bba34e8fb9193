// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::launcher {

/// Does what the command line asks for and returns the process's exit code. Errors are printed as one block.
int run_command_line(int argc, const char* const* argv);

}  // namespace lockstep::launcher
