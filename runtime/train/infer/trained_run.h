// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "runtime/data/make_dataset.h"
#include "runtime/data/preparation.h"
#include "runtime/job/job.h"
#include "runtime/train/saved_model.h"

namespace lockstep::train {

/// A run with which something is to be done: the job and the data's preparation that its checkpoint holds.
struct TrainedRun {
  job::Checked checked;
  SavedModel saved;
  bool best = false;  ///< the checkpoint is the run's best one, chosen among its checkpoints
};

/// Whether a path stands for a run, not for a job: it is a directory, or a bundle by its name.
bool is_run(const std::filesystem::path& path);

/// Opens a run directory, a checkpoint or a bundle. Of a run directory that keeps the best weights these are taken, or
/// with `latest` those of the newest checkpoint. Throws UsageError for a checkpoint of a program's own loop, which
/// holds no job, StorageError.
TrainedRun open_run(const std::filesystem::path& run, bool latest, std::span<const std::string> overrides);

}  // namespace lockstep::train
