// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdlib>
#include <exception>
#include <utility>

#include "launcher/command_line.h"
#include "launcher/first_process.h"
#include "launcher/rank.h"
#include "launcher/standard_streams.h"
#include "launcher/warnings.h"
#include "runtime/tensor/as_error.h"

namespace {

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
  lockstep::launcher::open_standard_streams();
  reserve = std::malloc(std::size_t{1} << 20);
  std::set_terminate(end_on_uncaught);
  if (const auto code = lockstep::launcher::serve_as_first_process()) return *code;
  // A reader that goes away, as head does, must not end a training run. A file that grows past a limit is an error of
  // the call that writes it.
  for (const int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_IGN);
  lockstep::launcher::log_to_stderr();
  return lockstep::launcher::run_command_line(argc, argv);
}
