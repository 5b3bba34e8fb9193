// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/history/find_runs.h"

#include <algorithm>
#include <system_error>

#include "runtime/base/error.h"

namespace lockstep::train {

namespace fs = std::filesystem;

namespace {

/// Folders below that are somebody else's tree.
constexpr int kMostLevels = 8;

void search(const fs::path& folder, int levels, std::vector<fs::path>& found) {
  if (holds_run(folder)) return found.push_back(folder);
  if (levels == 0) return;
  std::error_code unreadable;
  for (fs::directory_iterator at(folder, unreadable); at != fs::directory_iterator(); at.increment(unreadable)) {
    const fs::directory_entry& entry = *at;
    std::error_code hidden;
    if (entry.is_symlink(hidden) || !entry.is_directory(hidden) || entry.path().filename().string().starts_with('.')) {
      continue;
    }
    search(entry.path(), levels - 1, found);
  }
}

}  // namespace

bool holds_run(const fs::path& directory) {
  std::error_code hidden;
  const auto has = [&](const char* name) { return fs::exists(directory / name, hidden); };
  // A folder with a job alone is a user's.
  return has("metrics.jsonl") || has("summary.json") || (has("job.pbtxt") && (has(".lock") || has("checkpoints")));
}

std::vector<fs::path> find_runs(const fs::path& folder) {
  std::error_code failed;
  [[maybe_unused]] const fs::directory_iterator first(folder, failed);
  if (failed) {
    throw StorageError("cannot read the folder " + folder.string() + ": " + failed.message(),
                       "Name a folder of runs, or a run; without one it is runs/ in the current folder.");
  }
  std::vector<fs::path> found;
  search(folder, kMostLevels, found);
  std::ranges::sort(found);
  return found;
}

}  // namespace lockstep::train
