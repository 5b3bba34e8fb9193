// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "amp/grad_scaler/grad_scaler.h"
#include "comm/ddp/distributed_data_parallel.h"
#include "runtime/optim/optimizer.h"
#include "runtime/step/progress.h"

namespace lockstep::step {

/// The checkpoints of a training loop: weights, running statistics, the optimizer, the loss scale and the place in the
/// data, in folders of `directory` that are whole or absent. A loop that goes on from one trains to the bits of one
/// that was not interrupted. Rank 0 reads and writes for all.
class Checkpoints {
 public:
  /// All three must outlive this.
  Checkpoints(std::string directory, comm::DistributedDataParallel& ddp, optim::Optimizer& optimizer,
              amp::GradScaler& scaler)
      : directory_(std::move(directory)), ddp_(ddp), optimizer_(optimizer), scaler_(scaler) {}

  /// Restores the newest whole checkpoint on every rank; step 0, and nothing is changed, where there is none. The log
  /// names newer ones that are damaged. Throws UsageError that lists every tensor that does not fit, before anything is
  /// changed, and StorageError where all are damaged. A collective.
  Progress resume();
  /// Writes the checkpoint of `progress` and deletes those older than the newest `keep`; 0 keeps all. Throws
  /// StorageError where it cannot be written; old ones that cannot be deleted stay, which the log says once. A
  /// collective; waits for a GPU.
  void save(const Progress& progress, std::uint32_t keep = 3);

 private:
  std::string directory_;
  comm::DistributedDataParallel& ddp_;
  optim::Optimizer& optimizer_;
  amp::GradScaler& scaler_;
  bool prune_failed_ = false;
};

}  // namespace lockstep::step
