// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "amp/grad_scaler/grad_scaler.h"
#include "comm/ddp/distributed_data_parallel.h"
#include "runtime/optim/optimizer.h"
#include "runtime/step/loop_parts.h"
#include "runtime/step/progress.h"

namespace lockstep::step {

class LoopStore;

/// The checkpoints of a training loop: weights, running statistics, optimizers, loss scales and the place in the data,
/// in folders of `directory` that are whole or absent. A loop that goes on from one trains to the bits of one that was
/// not interrupted; where it computes otherwise (other ranks, threads, instructions), a warning names what differs.
/// Rank 0 reads and writes for all.
class Checkpoints {
 public:
  /// All parts must outlive this.
  Checkpoints(std::string directory, comm::DistributedDataParallel& ddp, optim::Optimizer& optimizer,
              amp::GradScaler& scaler)
      : Checkpoints(std::move(directory), {{{"", ddp}}, {{"", optimizer}}, {{"", scaler}}}) {}
  /// Any number of each, by names that the checkpoint keeps:
  ///   {.models = {{"generator", ddp_generator}, {"critic", ddp_critic}}, .optimizers = ..., .scalers = ...}
  /// The models are trained by the same ranks. Throws as require_parts().
  Checkpoints(std::string directory, LoopParts parts);
  ~Checkpoints();

  /// Restores the newest whole checkpoint on every rank; step 0, and nothing is changed, where there is none. The log
  /// names newer ones that are damaged. Throws UsageError, before anything is changed, for parts of other names or
  /// kinds and one that lists every tensor that does not fit; StorageError where all are damaged; and PeerError where
  /// ranks would round differently. A collective.
  Progress resume();
  /// Writes the checkpoint of `progress` and deletes those older than the newest `keep`; 0 keeps all. Throws
  /// StorageError where it cannot be written; old ones that cannot be deleted stay, which the log says once. A
  /// collective; waits for a GPU.
  void save(const Progress& progress, std::uint32_t keep = 3);

 private:
  LoopParts parts_;
  std::unique_ptr<LoopStore> store_;
};

}  // namespace lockstep::step
