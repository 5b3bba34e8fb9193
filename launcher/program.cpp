// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <utility>

#include "launcher/commands/command_line.h"
#include "launcher/commands/rank.h"
#include "launcher/first_process.h"
#include "launcher/main.h"
#include "launcher/stack_limit.h"
#include "launcher/standard_streams.h"
#include "launcher/supervisor/error_block.h"
#include "launcher/warnings.h"
#include "runtime/base/program_name.h"
#include "runtime/tensor/as_error.h"

namespace lockstep {

namespace {

/// Freed for the words on a lack of memory.
void* reserve = nullptr;

/// Where there is none for any other words.
[[noreturn]] void end_without_memory() {
  constexpr std::string_view kWords =
      "lockstep: error (memory, exit 6)\n"
      "  cannot allocate memory: this process may have too little for the program itself\n"
      "  \u2192 Raise its limits (ulimit -v, -d) or the control group's memory.max.\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kWords.data(), kWords.size());
  _exit(static_cast<int>(ExitCode::kMemory));
}

/// Ends this process with a message where 32 MiB cannot be mapped: libraries and program take less to start. A library
/// that runs out of memory gives no such message: Open MPI 5 starts a thread at once, whose stack takes 8 MiB.
__attribute__((no_sanitize("address", "thread", "undefined"))) void require_memory_to_start() {
  constexpr std::size_t kToStart = std::size_t{32} << 20;
  // A sanitizer has not started either: its mmap() may not be called yet.
  const long room = syscall(SYS_mmap, nullptr, kToStart, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == -1) end_without_memory();
  syscall(SYS_munmap, room, kToStart);
}

/// Run before the initialisers of all libraries.
[[gnu::section(".preinit_array"), gnu::used]] void (*before_all)() = require_memory_to_start;

/// The terminate handler: an uncaught exception, in whatever thread, still ends with a message and an exit code.
[[noreturn]] void end_on_uncaught() {
  std::free(std::exchange(reserve, nullptr));
  try {
    Error error(ExitCode::kEnvironment, "ended without a cause", "This is a defect of lockstep; report it.");
    try {
      if (const auto current = std::current_exception()) std::rethrow_exception(current);
    } catch (const std::exception& exception) {
      error = as_error(exception);
    } catch (...) {
    }
    launcher::end_rank(error);
  } catch (...) {
    end_without_memory();
  }
}

}  // namespace

int main(int argc, char** argv) {
  launcher::open_standard_streams();
  reserve = std::malloc(std::size_t{1} << 20);
  std::set_terminate(end_on_uncaught);
  take_program_name();
  if (const auto code = launcher::serve_as_first_process()) return *code;
  try {
    launcher::require_stack();
  } catch (const Error& error) {
    return launcher::report(error);
  }
  // A reader that goes away, as head does, must not end a training run. A file that grows past a limit is an error of
  // the call that writes it.
  for (const int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_IGN);
  launcher::log_to_stderr();
  return launcher::run_command_line(argc, argv);
}

}  // namespace lockstep
