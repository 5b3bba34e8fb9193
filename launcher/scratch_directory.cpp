// SPDX-License-Identifier: Apache-2.0
#include "launcher/scratch_directory.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <system_error>

#include "runtime/base/locked_file.h"
#include "runtime/tensor/error.h"

namespace lockstep::launcher {

namespace fs = std::filesystem;

namespace {

constexpr const char* kPrefix = "lockstep-run-";
constexpr const char* kLockFile = "owner";
/// An empty directory that is older gets no lock any more.
constexpr std::chrono::minutes kSettled{1};

const fs::path& memory() {
  static const fs::path path = "/dev/shm";
  return path;
}

fs::path base() { return access(memory().c_str(), W_OK | X_OK) == 0 ? memory() : fs::temp_directory_path(); }

/// The lock goes last, so that what is left of a removal that was cut short is still known to be abandoned.
void remove_directory(const fs::path& directory) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored)) {
    if (entry.path().filename() != kLockFile) fs::remove_all(entry.path(), ignored);
  }
  fs::remove_all(directory, ignored);
}

void remove_abandoned(const fs::path& parent) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, ignored)) {
    if (!entry.path().filename().string().starts_with(kPrefix)) continue;
    const fs::path lock_file = entry.path() / kLockFile;
    if (const Descriptor lock = take_lock(lock_file)) {
      remove_directory(entry.path());
    } else if (!fs::exists(lock_file, ignored)) {
      // Its owner is about to lock it, or was killed before.
      std::error_code unknown;
      const auto age = fs::file_time_type::clock::now() - fs::last_write_time(entry.path(), unknown);
      if (!unknown && age > kSettled) remove_directory(entry.path());
    }
  }
}

}  // namespace

ScratchDirectory::ScratchDirectory() {
  remove_abandoned(base());
  std::string path = base() / (std::string(kPrefix) + "XXXXXX");
  const bool made = mkdtemp(path.data()) != nullptr;
  path_ = path;
  if (made) lock_ = make_locked_file(path_ / kLockFile);
  if (!lock_) {
    throw StorageError("cannot make a directory in " + base().string() + ": " + std::generic_category().message(errno),
                       "Check the space and the permissions there.");
  }
}

void ScratchDirectory::remove() {
  if (path_.empty()) return;
  remove_directory(path_);
  std::error_code ignored;
  // Its name may be another one's next.
  if (!fs::exists(path_, ignored)) path_.clear();
}

bool ScratchDirectory::in_memory() const { return path_.parent_path() == memory(); }

}  // namespace lockstep::launcher
