// SPDX-License-Identifier: Apache-2.0
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <memory>

#include "launcher/command_line.h"
#include "runtime/train/stdout_relay.h"
#include "runtime/train/terminal.h"

namespace {

/// Warnings come behind what was printed before them.
class WarningSink final : public spdlog::sinks::ansicolor_stderr_sink_mt {
 public:
  using ansicolor_stderr_sink::ansicolor_stderr_sink;
  void log(const spdlog::details::log_msg& message) override {
    lockstep::train::StdoutRelay::settle();
    ansicolor_stderr_sink::log(message);
  }
};

}  // namespace

int main(int argc, char** argv) {
  // A reader that goes away, as head does, must not end a training run. A file that grows past a limit is an error of
  // the call that writes it.
  for (const int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_IGN);
  // Warnings must not mix with results, which go to stdout.
  const auto color = lockstep::train::shows_color(stderr) ? spdlog::color_mode::automatic : spdlog::color_mode::never;
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("lockstep", std::make_shared<WarningSink>(color)));
  spdlog::set_pattern("%n: %^%l%$: %v");
  return lockstep::launcher::run_command_line(argc, argv);
}
