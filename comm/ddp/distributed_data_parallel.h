// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "comm/ddp/ddp_options.h"
#include "comm/ddp/reducer.h"
#include "comm/group/world.h"
#include "runtime/nn/module.h"

namespace lockstep::comm {

/// Trains one model on all ranks as if it were one process with the global batch. Moves the gradient arena into memory
/// that the ranks of a node share, broadcasts rank 0's weights and statistics, synchronises batch norm, and reduces
/// gradients bucket by bucket during each backward pass.
///
/// Gradients come out as those of the average over ranks of the ranks' losses (their sum with gradient_average: false).
/// For uneven shares, multiply a rank's mean loss by loss_weight().
class DistributedDataParallel {
 public:
  /// `model` was given to amp::initialize, and must outlive this. A collective: throws PeerError naming two ranks and
  /// the parameter, or the option, in which they differ. Throws FieldError for an option out of range, and UsageError
  /// when another one trains the model.
  DistributedDataParallel(nn::Module& model, const World& world, const DdpOptions& options = {});
  DistributedDataParallel(const DistributedDataParallel&) = delete;
  DistributedDataParallel& operator=(const DistributedDataParallel&) = delete;

  /// The model's output for this rank's share of the batch, [samples, ...]; a rank may have none. Where several ranks
  /// draw dropout masks outside an nn::StepContext, the ranks tell each other how many samples they have: a collective
  /// of the CPU, which waits for the slowest of them. forward(input, first_sample) needs none.
  Tensor forward(const Tensor& input);
  /// The same where it is known that the input's first row is sample `first_sample` of the global batch, as a
  /// data::Batch says.
  Tensor forward(const Tensor& input, std::int64_t first_sample);

  /// What a rank's mean loss over `local` samples is multiplied by, so that the reduced gradient is that of the mean
  /// over all `global` samples.
  double loss_weight(std::int64_t local, std::int64_t global) const;

  /// Gradients of backward passes in its scope stay on the rank and accumulate.
  class NoSync {
   public:
    explicit NoSync(DistributedDataParallel& ddp) : reducer_(*ddp.reducer_), before_(reducer_.enabled()) {
      reducer_.set_enabled(false);
    }
    ~NoSync() { reducer_.set_enabled(before_); }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    Reducer& reducer_;
    bool before_;
  };
  NoSync no_sync() { return NoSync(*this); }

  nn::Module& model() { return model_; }
  Reducer& reducer() { return *reducer_; }

  /// Makes every rank hold rank 0's masters, compute copies and running statistics. A collective.
  void broadcast_weights();
  /// Where batch norm is not synchronised each rank has running statistics of its own: makes every rank hold rank 0's,
  /// those that a checkpoint keeps. Does nothing where it is. A collective; call it before statistics are used or
  /// compared.
  void share_statistics();

 private:
  /// Whether the masks of the next forward pass depend on what the other ranks hold.
  bool needs_first_sample() const;
  /// The number of samples that the ranks before this one have. A collective.
  std::int64_t samples_before(std::int64_t samples) const;
  void broadcast_statistics();
  void require_unwrapped() const;
  void require_same_model(const DdpOptions& options) const;

  nn::Module& model_;
  std::shared_ptr<nn::Arena> arena_;
  std::shared_ptr<Communicator> communicator_;
  bool average_;
  std::shared_ptr<void> synchronized_;  ///< batch norm, while this lives; null where each rank normalises by itself
  std::unique_ptr<Reducer> reducer_;
};

}  // namespace lockstep::comm
