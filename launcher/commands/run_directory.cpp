// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/run_directory.h"

#include <algorithm>
#include <system_error>

#include "configs/job.pb.h"
#include "runtime/base/error.h"
#include "runtime/base/files/durable_file.h"

namespace lockstep::launcher {

namespace fs = std::filesystem;

fs::path run_directory(const std::string& given, const job::Job& job) {
  return given.empty() ? fs::path("runs") / job.name() : fs::path(given);
}

fs::path found_run_directory(const std::string& given, const job::Job& job, const fs::path& job_file) {
  const fs::path here = run_directory(given, job);
  if (!given.empty() || fs::exists(here)) return here;
  const fs::path beside = job_file.parent_path() / here;
  if (fs::exists(beside)) return beside;
  const std::string also = beside == here ? "" : " nor at " + beside.string();
  throw StorageError("no run of \"" + job.name() + "\" at " + here.string() + also,
                     "Name the run: in the job's place, or with --checkpoint.");
}

void make_run_directory(const fs::path& directory) {
  try {
    make_directories(directory.string());
  } catch (const FileError& error) {
    throw StorageError(
        "cannot make the run directory " + directory.string() + ": " + std::generic_category().message(error.error()),
        "Check the space and the permissions there, or choose another --run-dir.");
  }
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
