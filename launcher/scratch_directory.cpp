// SPDX-License-Identifier: Apache-2.0
#include "launcher/scratch_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <system_error>

#include "runtime/tensor/error.h"

namespace lockstep::launcher {

namespace fs = std::filesystem;

namespace {

constexpr const char* kPrefix = "lockstep-";
constexpr const char* kLockFile = "owner";
/// Younger ones may not be locked yet.
constexpr std::chrono::minutes kSettled{1};

const fs::path& memory() {
  static const fs::path path = "/dev/shm";
  return path;
}

fs::path base() { return access(memory().c_str(), W_OK | X_OK) == 0 ? memory() : fs::temp_directory_path(); }

/// Whether nobody holds the lock of this directory, which must be one of ours.
bool is_abandoned(const fs::directory_entry& entry) {
  std::error_code error;
  if (!entry.path().filename().string().starts_with(kPrefix)) return false;
  const auto age = fs::file_time_type::clock::now() - fs::last_write_time(entry.path(), error);
  if (error || age < kSettled) return false;
  const Descriptor lock(open((entry.path() / kLockFile).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  return lock && flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
}

void remove_abandoned(const fs::path& parent) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, ignored)) {
    if (is_abandoned(entry)) fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace

ScratchDirectory::ScratchDirectory() {
  remove_abandoned(base());
  std::string path = base() / (std::string(kPrefix) + "XXXXXX");
  const bool made = mkdtemp(path.data()) != nullptr;
  path_ = path;
  if (made) lock_.reset(open((path_ / kLockFile).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock_ || flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    throw StorageError("cannot make a directory in " + base().string() + ": " + std::generic_category().message(errno),
                       "Check the space and the permissions there.");
  }
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

bool ScratchDirectory::in_memory() const { return path_.parent_path() == memory(); }

}  // namespace lockstep::launcher
