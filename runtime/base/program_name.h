// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lockstep {

/// The command that a user is told to type: "lockstep", or the name of a program that ends in lockstep::main().
const std::string& program_name();

/// The name of the running program's file; program_name() where the system does not tell.
std::string running_program();

/// Makes that the command's name. lockstep::main() calls it before all else.
void take_program_name();

}  // namespace lockstep
