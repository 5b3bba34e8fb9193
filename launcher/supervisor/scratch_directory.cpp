// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/scratch_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/base/files/locked_file.h"

namespace lockstep::launcher {

namespace fs = std::filesystem;

namespace {

// It gets its name once it has its lock.
constexpr const char* kPrefix = "lockstep-run-";
constexpr const char* kNewPrefix = "lockstep-new-";
constexpr const char* kLockFile = "owner";
/// A new one that is older gets no lock any more.
constexpr std::chrono::minutes kSettled{1};

const fs::path& memory() {
  static const fs::path path = "/dev/shm";
  return path;
}

fs::path base() { return access(memory().c_str(), W_OK | X_OK) == 0 ? memory() : fs::temp_directory_path(); }

/// Holds a directory of this user's; none where `path` is anything else. Where it lies everybody may make a name that
/// leads elsewhere, so what is found there is looked at, and removed, through what is held.
Descriptor hold(const fs::path& path) {
  Descriptor directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!directory || fstat(directory.get(), &status) != 0 || status.st_uid != geteuid()) return {};
  return directory;
}

/// A path that leads to what is held, whatever becomes of its name.
fs::path path_of(const Descriptor& held) { return "/proc/self/fd/" + std::to_string(held.get()); }

/// Removes what is held and stands at `path`. The lock goes last, so that what is left of a removal that was cut short
/// is still known to be abandoned.
void remove_directory(const Descriptor& held, const fs::path& path) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_of(held), ignored)) {
    if (entry.path().filename() != kLockFile) fs::remove_all(entry.path(), ignored);
  }
  fs::remove(path_of(held) / kLockFile, ignored);
  rmdir(path.c_str());
}

/// Whether its owner may be about to lock it.
bool is_being_made(const std::string& name, const Descriptor& held) {
  if (!name.starts_with(kNewPrefix)) return false;
  std::error_code unknown;
  const auto age = fs::file_time_type::clock::now() - fs::last_write_time(path_of(held), unknown);
  return unknown || age < kSettled;
}

void remove_abandoned(const fs::path& parent) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix) && !name.starts_with(kNewPrefix)) continue;
    const Descriptor held = hold(entry.path());
    if (!held) continue;
    const fs::path lock_file = path_of(held) / kLockFile;
    const Descriptor lock = take_lock(lock_file);
    // One without a lock is the rest of a removal.
    const bool has_lock_file = fs::exists(fs::symlink_status(lock_file, ignored));
    if (lock || (!has_lock_file && !is_being_made(name, held))) remove_directory(held, entry.path());
  }
}

/// The lock of a new directory, whose name it leaves in `path`; none where it cannot be made, with the reason in errno.
Descriptor make_locked_directory(const fs::path& parent, fs::path& path) {
  std::string made = parent / (std::string(kNewPrefix) + "XXXXXX");
  if (mkdtemp(made.data()) == nullptr) return {};
  const std::string random = made.substr(made.size() - 6);
  path = parent / (kPrefix + random);
  Descriptor lock = make_locked_file(fs::path(made) / kLockFile);
  if (lock && std::rename(made.c_str(), path.c_str()) == 0) return lock;
  const int error = errno;
  if (const Descriptor held = hold(made)) remove_directory(held, made);
  errno = error;
  return {};
}

}  // namespace

ScratchDirectory::ScratchDirectory() {
  remove_abandoned(base());
  lock_ = make_locked_directory(base(), path_);
  if (!lock_) {
    throw StorageError("cannot make a directory in " + base().string() + ": " + std::generic_category().message(errno),
                       "Check the space and the permissions there.");
  }
}

void ScratchDirectory::remove() {
  if (path_.empty()) return;
  if (const Descriptor held = hold(path_)) remove_directory(held, path_);
  std::error_code ignored;
  // Its name may be another one's next.
  if (!fs::exists(path_, ignored)) path_.clear();
}

bool ScratchDirectory::in_memory() const { return path_.parent_path() == memory(); }

}  // namespace lockstep::launcher
