// SPDX-License-Identifier: Apache-2.0
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <memory>
#include <utility>

#include "launcher/command_line.h"
#include "launcher/rank.h"
#include "runtime/tensor/as_error.h"
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

/// Freed for the words on a lack of memory.
void* reserve = nullptr;

/// What no one catches, as in a thread of its own, still ends with words and an exit code.
[[noreturn]] void end_on_uncaught() {
  std::free(std::exchange(reserve, nullptr));
  lockstep::Error error(lockstep::ExitCode::kEnvironment, "ended without a cause",
                        "This is a defect of lockstep; report it.");
  try {
    if (const auto current = std::current_exception()) std::rethrow_exception(current);
  } catch (const std::exception& exception) {
    error = lockstep::as_error(exception);
  } catch (...) {
  }
  lockstep::launcher::end_rank(error);
}

}  // namespace

int main(int argc, char** argv) {
  reserve = std::malloc(std::size_t{1} << 20);
  std::set_terminate(end_on_uncaught);
  // A reader that goes away, as head does, must not end a training run. A file that grows past a limit is an error of
  // the call that writes it.
  for (const int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_IGN);
  // Warnings must not mix with results, which go to stdout.
  const auto color = lockstep::train::shows_color(stderr) ? spdlog::color_mode::automatic : spdlog::color_mode::never;
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("lockstep", std::make_shared<WarningSink>(color)));
  spdlog::set_pattern("%n: %^%l%$: %v");
  return lockstep::launcher::run_command_line(argc, argv);
}
