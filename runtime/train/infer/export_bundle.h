// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/train/saved_model.h"

namespace lockstep::job {
class Job;
}

namespace lockstep::train {

struct BundleResult {
  std::string checkpoint;  ///< what was exported
  bool of_mean = false;    ///< the running mean of its weights
  std::int64_t bytes = 0;
};

/// Writes, whole or not at all, a run as one file (checkpoint/bundle.h): the weights that predictions use, running
/// statistics, the job and the preparation of samples. The optimizer's state stays behind: a bundle predicts, is
/// evaluated and exported, and begins another run (init_from), but does not resume. Throws UsageError where the
/// checkpoint is of another model, StorageError.
BundleResult export_bundle(const job::Job& job, const SavedModel& saved, const std::filesystem::path& out);

}  // namespace lockstep::train
