// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "launcher/commands/options.h"
#include "runtime/data/make_dataset.h"
#include "runtime/job/job.h"
#include "runtime/train/saved_model.h"

namespace lockstep::launcher {

/// A job and the model that was trained by it.
struct Trained {
  job::Checked checked;
  train::SavedModel saved;
  std::string note = {};  ///< on the choice of the checkpoint, for people
};

/// Throws StorageError where files of these data of a run are not where they were when it was trained.
void require_data(const Trained& trained, data::Split split);

/// Which model a command works with: a run, or a job and a checkpoint of one of its runs.
struct TrainedOptions {
  JobOptions job;  ///< a run stands in the job's place
  std::string checkpoint;
  bool latest = false;
  bool raw_weights = false;

  void add_to(CLI::App& command);
  /// Throws UsageError, StorageError. A run's checkpoint is read, by the first call.
  const Trained& open();
  /// The options as a rank's command line says them.
  std::vector<std::string> arguments() const;

 private:
  Trained opened() const;
  std::optional<Trained> opened_;
};

}  // namespace lockstep::launcher
