// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::train {

/// The outcome of one optimizer step.
struct StepReport {
  std::uint64_t step = 0;  ///< counted from 1
  std::uint64_t epoch = 0;
  double loss = 0.0;  ///< mean over the global batch
  double lr = 0.0;
  double loss_scale = 1.0;       ///< that the step used
  double next_loss_scale = 1.0;  ///< after it
  bool skipped = false;
  std::string parameter;  ///< of a skip: the first one whose gradient was bad; empty where the ranks disagree instead
  int rank = -1;          ///< of a skip: the first rank whose gradient was bad; below 0 where that is not known
  std::int64_t samples = 0;
  std::optional<double> grad_norm;  ///< of the unscaled gradients, where clipping by norm measures it
  double seconds = 0.0;
  double data_seconds = 0.0;           ///< of these, waiting for data
  std::int64_t queue_depth = 0;        ///< batches that were decoded when the step asked for its first
  std::optional<double> rank_seconds;  ///< of these, waiting for other ranks; nothing on a GPU, which waits unseen
  /// By rank: seconds in which it waited for others before the step's last collective; empty of a lone rank and on a
  /// GPU.
  std::vector<float> rank_waits = {};
  std::uint64_t applied_steps = 0;  ///< of the run so far
  std::uint64_t skipped_steps = 0;  ///< of the run so far
  /// The samples skipped in the run so far, over all ranks; nothing where an unreadable sample ends the run.
  std::optional<std::uint64_t> skipped_samples = {};

  /// Why the step was skipped: "inf or NaN in the gradient of first.weight on rank 1".
  std::string reason() const {
    if (parameter.empty()) return "the ranks disagree on how to step";
    return "inf or NaN in the gradient of " + parameter + (rank >= 0 ? " on rank " + std::to_string(rank) : "");
  }
  double samples_per_second() const { return seconds > 0 ? static_cast<double>(samples) / seconds : 0.0; }
};

}  // namespace lockstep::train
