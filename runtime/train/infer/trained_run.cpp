// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/trained_run.h"

#include <spdlog/spdlog.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/bundle.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/store.h"
#include "runtime/step/saved_preparation.h"

namespace lockstep::train {

namespace fs = std::filesystem;

namespace {

/// The newest whole checkpoint in a folder of some; none where there is no such folder or no checkpoint in it.
std::optional<checkpoint::Checkpoint> newest_in(const fs::path& folder) {
  if (!fs::is_directory(folder)) return std::nullopt;
  std::optional<checkpoint::Checkpoint> found = checkpoint::Store(folder.string()).latest_state();
  if (!found) return found;
  for (const std::string& notice : found->notices) spdlog::warn(notice);
  return found;
}

checkpoint::Checkpoint state_in(const fs::path& run, bool latest) {
  if (!fs::is_directory(run) || fs::exists(run / "manifest.json")) {
    checkpoint::Checkpoint found;
    found.path = run.string();
    found.state = checkpoint::read_state(found.path);
    return found;
  }
  for (const fs::path& folder : {latest ? fs::path() : run / "best", run / "checkpoints", run}) {
    if (folder.empty()) continue;
    if (auto found = newest_in(folder)) return std::move(*found);
  }
  throw StorageError("no checkpoint in " + run.string(),
                     "Name a run directory that holds checkpoints/, a checkpoint, or a bundle, FILE.lockstep.");
}

}  // namespace

bool is_run(const fs::path& path) { return fs::is_directory(path) || checkpoint::is_bundle(path); }

TrainedRun open_run(const fs::path& run, bool latest, std::span<const std::string> overrides) {
  const checkpoint::Checkpoint found = state_in(run, latest);
  if (!found.state.has_job()) {
    throw UsageError(found.path + " holds no job: a program's own loop has saved it",
                     "Read its weights in that program, or name a job's run.");
  }
  return {.checked = job::load_trained(found.state.job(), run, overrides),
          .saved = {.checkpoint = found.path, .preparation = step::saved_preparation(found.state, found.path)},
          .best = fs::path(found.path).parent_path() == run / "best"};
}

}  // namespace lockstep::train
