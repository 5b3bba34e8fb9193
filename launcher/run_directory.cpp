// SPDX-License-Identifier: Apache-2.0
#include "launcher/run_directory.h"

#include <algorithm>
#include <system_error>

#include "runtime/tensor/error.h"

namespace lockstep::launcher {

namespace fs = std::filesystem;

fs::path run_directory(const std::string& given, const job::Job& job) {
  return given.empty() ? fs::path("runs") / job.name() : fs::path(given);
}

void make_run_directory(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (!error && fs::is_directory(directory)) return;
  throw StorageError("cannot make the run directory " + directory.string() + (error ? ": " + error.message() : ""),
                     "Check the space and the permissions there, or choose another --run-dir.");
}

bool saved_since(const fs::path& directory, fs::file_time_type time) {
  std::error_code none;
  const fs::directory_iterator checkpoints(directory / "checkpoints", none);
  return std::any_of(begin(checkpoints), end(checkpoints), [&](const fs::directory_entry& entry) {
    // One that is being written has a name with a point, and may never be finished.
    if (entry.path().has_extension()) return false;
    const fs::file_time_type written = fs::last_write_time(entry.path() / "manifest.json", none);
    return !none && written >= time;
  });
}

}  // namespace lockstep::launcher
