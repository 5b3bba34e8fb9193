// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "runtime/tensor/error.h"

namespace lockstep::train {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPoll{20};

}  // namespace

RunLock::RunLock(const std::filesystem::path& run_dir, milliseconds patience) {
  std::error_code failed;  // opening says why
  std::filesystem::create_directories(run_dir, failed);
  const std::filesystem::path path = run_dir / ".lock";
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) {
    throw StorageError("cannot make " + path.string() + ": " + std::generic_category().message(errno),
                       "Check the permissions of the run directory, or choose another --run-dir.");
  }
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    if (std::chrono::steady_clock::now() > deadline) {
      close(descriptor_);
      throw UsageError("another run is training in " + run_dir.string(),
                       "Wait for its end or stop it, or choose another --run-dir.");
    }
    std::this_thread::sleep_for(kPoll);
  }
}

RunLock::~RunLock() { close(descriptor_); }

}  // namespace lockstep::train
