// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "comm/ddp/communication_hook.h"
#include "comm/ddp/ddp_options.h"
#include "comm/ddp/reducer.h"
#include "comm/ddp/share.h"
#include "comm/group/world.h"
#include "runtime/nn/module.h"

namespace lockstep::comm {

/// Where a rank's input lies in the run, as far as that is known.
struct InputPlace {
  std::uint64_t step = 0;         ///< counted from 1; 0: not known
  std::int64_t first_sample = 0;  ///< the place of the input's first row in the step's global batch
  std::int64_t step_samples = 0;  ///< of the step, over all ranks and micro-batches; 0: not known
};

/// A rank's share of a micro-batch that knows its place, such as data::Batch. One whose model takes several inputs has
/// inputs(), all of them.
template <class T>
concept PlacedBatch = requires(const T& batch) {
  { batch.input } -> std::convertible_to<Tensor>;
  { batch.step } -> std::convertible_to<std::uint64_t>;
  { batch.first_sample } -> std::convertible_to<std::int64_t>;
  { batch.step_samples } -> std::convertible_to<std::int64_t>;
};

/// Trains one model on all ranks as if it were one process with the global batch. Moves the gradient arena into memory
/// that the ranks of a node share, broadcasts rank 0's weights and statistics, synchronises batch norm, and reduces
/// gradients bucket by bucket during each backward pass.
///
/// Where forward() is told how many samples the step has, gradients come out as those of the mean over all of them: the
/// rank's loss is the sum over its samples divided by the output's loss_divisor(). Where it is not, they are those of
/// the average over ranks of the ranks' losses (their sum with gradient_average: false), and the output is a Tensor,
/// which has no divisor: the two ways do not mix.
class DistributedDataParallel {
 public:
  /// `model` was given to amp::initialize, and must outlive this. A collective: throws PeerError naming two ranks and
  /// the parameter (its name, dtype, shape, whether it is frozen), or the option, in which they differ. Throws
  /// FieldError for an option out of range, and UsageError when another one trains the model.
  DistributedDataParallel(nn::Module& model, const World& world, const DdpOptions& options = {});
  DistributedDataParallel(const DistributedDataParallel&) = delete;
  DistributedDataParallel& operator=(const DistributedDataParallel&) = delete;

  /// The model's output for this rank's share of a micro-batch, [samples, ...], at the opt level that amp::initialize
  /// gave the model: see nn::forward(). A rank may have no sample. Dropout masks are named by the batch's step and the
  /// samples' places in it, as within an nn::StepContext; one that encloses the call stays in force, so put one around
  /// several forward passes over the same samples of a step, which would otherwise have the same masks. Where the step
  /// is not known, layers count their calls. The backward pass throws UsageError where this share's mean loss would be
  /// weighed wrong and no output was asked for its divisor since this was made.
  template <PlacedBatch T>
  ShareOutput forward(const T& batch) {
    const InputPlace place{batch.step, batch.first_sample, batch.step_samples};
    if constexpr (requires { batch.inputs(); }) {
      return forward(batch.inputs(), place);
    } else {
      return forward(batch.input, place);
    }
  }
  ShareOutput forward(const Tensor& input, const InputPlace& place) { return forward(alone(input), place); }
  /// `inputs` of the same rows, as a MultiInputModule takes them.
  ShareOutput forward(std::span<const Tensor> inputs, const InputPlace& place);
  /// Forward without a place in the step: the loss is the mean over the rank's samples. Where several ranks draw
  /// dropout masks outside an nn::StepContext, the ranks tell each other how many samples they have: a collective of
  /// the CPU, which waits for the slowest of them.
  Tensor forward(const Tensor& input) { return forward(alone(input)); }
  Tensor forward(std::span<const Tensor> inputs);

  /// Gradients of backward passes in its scope stay on the rank and accumulate.
  class [[nodiscard]] NoSync {
   public:
    /// `when` false: nothing changes.
    [[nodiscard]] explicit NoSync(DistributedDataParallel& ddp, bool when = true)
        : reducer_(*ddp.reducer_), before_(reducer_.enabled()) {
      if (when) reducer_.set_enabled(false);
    }
    ~NoSync() { reducer_.set_enabled(before_); }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    Reducer& reducer_;
    bool before_;
  };
  [[nodiscard]] NoSync no_sync(bool when = true) { return NoSync(*this, when); }

  /// The gradients that lie there by now are those of all ranks: the program has reduced what passes under no_sync()
  /// left. Optimizers step with them, and the next backward pass adds to them. On every rank alike.
  void take_as_reduced() { arena_->note_reduction({}); }

  /// Has `hook` reduce the gradients of the backward passes to come, bucket by bucket, in place of an all_reduce; null:
  /// an all_reduce again. `name` tells the ranks' hooks apart. A collective: throws PeerError where the ranks give
  /// other names. Throws UsageError within a backward pass. Overflow is looked for in each rank's own gradients, before
  /// the hook, and in what it leaves.
  void set_communication_hook(const std::string& name, CommunicationHook hook);

  nn::Module& model() { return model_; }
  Communicator& communicator() { return *communicator_; }
  Reducer& reducer() { return *reducer_; }

  /// Makes every rank hold rank 0's masters, compute copies and running statistics. A collective.
  void broadcast_weights();
  /// Where batch norm is not synchronised over all ranks they have different running statistics: makes every rank hold
  /// rank 0's, those that a checkpoint keeps. Does nothing where it is. A collective; call it before statistics are
  /// used or compared.
  void share_statistics();

 private:
  static std::span<const Tensor> alone(const Tensor& input) { return {&input, 1}; }
  /// Makes the next reductions those of such a share; without one, of a step of which nothing is known.
  /// `mean_is_right`: the mean over the rank's samples, reduced so, is its part of the mean over the step's.
  void weigh(const std::optional<Share>& share, bool mean_is_right = true);
  /// Throws UsageError where the gradients of a pass are weighed for a divisor that nobody has asked for.
  void require_divisor() const;
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
  std::uint64_t shares_asked_;          ///< ShareOutput::shares_asked() when this was made
  bool mean_is_right_ = true;           ///< of the last forward pass
  std::shared_ptr<void> synchronized_;  ///< batch norm, while this lives; null where each rank normalises by itself
  bool one_statistics_ = false;         ///< whether all ranks have the same running statistics
  std::unique_ptr<Reducer> reducer_;
};

}  // namespace lockstep::comm
