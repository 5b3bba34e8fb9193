// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/commands/options.h"

namespace lockstep::launcher {

// Each adds a command. When the command line names it, `chosen` becomes what to do.

void add_bench(CLI::App& app, Action& chosen);
void add_doctor(CLI::App& app, Action& chosen);
void add_eval(CLI::App& app, Action& chosen);
void add_export(CLI::App& app, Action& chosen);
void add_find_lr(CLI::App& app, Action& chosen);
void add_infer(CLI::App& app, Action& chosen);
void add_init(CLI::App& app, Action& chosen);
void add_inspect(CLI::App& app, Action& chosen);
void add_launch(CLI::App& app, Action& chosen);
void add_report(CLI::App& app, Action& chosen);
void add_runs(CLI::App& app, Action& chosen);
void add_sweep(CLI::App& app, Action& chosen);
void add_train(CLI::App& app, Action& chosen);
void add_validate(CLI::App& app, Action& chosen);
void add_watch(CLI::App& app, Action& chosen);
/// Its command writes a shell's completion script for all commands that `app` has when it parses.
void add_completion(CLI::App& app, Action& chosen);
/// Its command writes a manual page of one of those commands, or of the program.
void add_man(CLI::App& app, Action& chosen);

}  // namespace lockstep::launcher
