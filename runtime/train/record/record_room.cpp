// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/record_room.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <string>

#include "runtime/base/descriptor.h"
#include "runtime/base/files/storage_calls.h"
#include "runtime/base/files/sync.h"

namespace lockstep::train {

namespace fs = std::filesystem;

namespace {

/// The room that a summary with many metrics and a long error takes.
constexpr off_t kRoomBytes = off_t{64} << 10;

std::string room_in(const fs::path& run_dir) { return (run_dir / ".summary.json.room").string(); }

/// Not through a link that somebody has put there.
Descriptor open_room(const std::string& path, int flags) {
  const CallUnderWay under_way(StorageOperation::kOpen, path);
  return Descriptor(::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0666));
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

void take_record_room(const fs::path& run_dir) noexcept try {
  const std::string path = room_in(run_dir);
  const Descriptor file = open_room(path, O_CREAT);
  if (!file) return;
  const CallUnderWay under_way(StorageOperation::kWrite, path);
  if (::posix_fallocate(file.get(), 0, kRoomBytes) != 0) ::unlink(path.c_str());
} catch (const std::exception&) {
  // The run can do without the reserved file as long as the disk has space.
}

bool write_into_record_room(const fs::path& run_dir, std::string_view summary) noexcept try {
  const std::string path = room_in(run_dir);
  const Descriptor file = open_room(path, 0);
  if (!file) return false;
  const CallUnderWay under_way(StorageOperation::kWrite, path);
  return write_all(file.get(), summary) && ::ftruncate(file.get(), static_cast<off_t>(summary.size())) == 0 &&
         sync_descriptor(file.get()) == 0 && std::rename(path.c_str(), (run_dir / "summary.json").c_str()) == 0;
} catch (const std::exception&) {
  return false;
}

void return_record_room(const fs::path& run_dir) noexcept try {
  const std::string path = room_in(run_dir);
  const CallUnderWay under_way(StorageOperation::kUnlink, path);
  ::unlink(path.c_str());
} catch (const std::exception&) {
  // It is in nobody's way.
}

}  // namespace lockstep::train
