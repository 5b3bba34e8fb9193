// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/shim/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

namespace lockstep::faults {

namespace {

/// Out of the way of those that a program numbers itself.
constexpr int kHighDescriptor = 900;

// System calls, because the functions of these names are this library's own.
bool look_at(int descriptor, struct stat& status) {
  return syscall(SYS_newfstatat, descriptor, "", &status, AT_EMPTY_PATH) == 0;
}

std::string hexadecimal(std::string_view data) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : data) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

}  // namespace

Journal::Journal() {
  const char* path = std::getenv("LOCKSTEP_FAULTS_JOURNAL");
  if (path == nullptr) return;
  struct stat status {};
  if (look_at(STDOUT_FILENO, status)) {
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
  const auto file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0600));
  if (file < 0) return;
  file_ = ::fcntl(file, F_DUPFD_CLOEXEC, kHighDescriptor);
  syscall(SYS_close, file);
}

void Journal::add(const std::string& role, const Call& call, const std::string& fault, const Outcome& outcome) const {
  std::string line =
      role + '\t' + call.operation + '\t' + std::to_string(call.number) + '\t' + call.path + '\t' + fault;
  line += '\t' + std::to_string(outcome.result) + '\t' + std::to_string(outcome.flags);
  line += '\t' + std::to_string(outcome.offset) + '\t' + outcome.other + '\t' + hexadecimal(outcome.data) + '\n';
  [[maybe_unused]] const long written = syscall(SYS_write, file_, line.data(), line.size());
}

bool Journal::is_stdout(int descriptor) const {
  struct stat status {};
  return look_at(descriptor, status) && status.st_dev == device_ && status.st_ino == inode_;
}

}  // namespace lockstep::faults
