// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep {

/// The command, for a program's main() to end in: does what the command line asks for and returns the exit code. Jobs
/// may call what the program registered before (model_zoo::register_model(), data::register_dataset(),
/// step::register_loss()). The ranks that it starts are this program again. To be called once, from the main thread.
int main(int argc, char** argv);

}  // namespace lockstep
