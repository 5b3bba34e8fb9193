// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "launcher/commands/options.h"
#include "runtime/job/job.h"
#include "runtime/train/saved_model.h"

namespace lockstep::launcher {

/// A job and the model that was trained by it.
struct Trained {
  job::Checked checked;
  train::SavedModel saved;
  std::string note = {};  ///< on the choice of the checkpoint, for people
};

/// Which model a command works with: a run, or a job and a checkpoint of one of its runs.
struct TrainedOptions {
  JobOptions job;  ///< a run stands in the job's place
  std::string checkpoint;
  bool latest = false;
  bool raw_weights = false;

  void add_to(CLI::App& command);
  /// Throws UsageError, StorageError. Of a run the checkpoint is read; of a job it need not be there yet.
  Trained open() const;
  /// The options as a rank's command line says them.
  std::vector<std::string> arguments() const;
};

}  // namespace lockstep::launcher
