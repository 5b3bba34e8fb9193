// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "comm/group/communicator.h"
#include "runtime/train/record/train_options.h"

namespace lockstep::train {

/// The steps of the checkpoints that a rank sees in the run directory, which may lie on a disk of its host's own.
struct SeenCheckpoints {
  std::string host;
  std::vector<std::uint64_t> steps;  ///< the newest first
};

/// "host b holds a checkpoint of step 100 in RUN, and rank 0, on host a, ...": of the first host whose newest
/// checkpoint rank 0, which alone reads and writes them, does not see. Empty where there is none.
struct Elsewhere {
  std::string newer;  ///< than any that rank 0 sees
  std::string older;
};
Elsewhere checkpoints_elsewhere(const std::vector<SeenCheckpoints>& ranks, const std::filesystem::path& run_dir);

/// Looks for checkpoints that only other hosts hold. A collective, before anything is made. A run that resumes by
/// itself throws UsageError, on every rank, where one of them is newer: it would train steps again without a word.
/// Otherwise, and of older ones, it warns, unless the run is to start anew.
void look_for_checkpoints_elsewhere(comm::Communicator& communicator, const TrainOptions& options);

}  // namespace lockstep::train
