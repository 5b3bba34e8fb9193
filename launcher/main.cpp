// SPDX-License-Identifier: Apache-2.0
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <csignal>

#include "launcher/command_line.h"
#include "runtime/train/terminal.h"

int main(int argc, char** argv) {
  // A reader that goes away, as head does, must not end a training run.
  std::signal(SIGPIPE, SIG_IGN);
  // Warnings must not mix with results, which go to stdout.
  const auto color = lockstep::train::shows_color(stderr) ? spdlog::color_mode::automatic : spdlog::color_mode::never;
  spdlog::set_default_logger(spdlog::stderr_color_mt("lockstep", color));
  spdlog::set_pattern("%n: %^%l%$: %v");
  return lockstep::launcher::run_command_line(argc, argv);
}
