// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/tensor/tensor.h"

namespace lockstep::comm {

/// The factors that make the ranks' losses and gradients those of the mean over all samples of a step, however uneven
/// the ranks' shares are. A rank's loss is the sum over its samples divided by `loss_divisor`: its mean where the
/// shares are even. The divisor is the size of the largest share, so that 16-bit gradients of uneven shares are no
/// larger than those of a mean.
struct Share {
  double loss_divisor = 1.0;
  float gradient_factor = 1.0f;  ///< what gradients are multiplied by, in float32, before they are reduced
  double loss_factor = 1.0;      ///< a rank's losses times this, summed over micro-batches and ranks, are the mean
};

/// The share of a step of `step_samples` > 0 over all ranks and micro-batches. `average`: the reduction divides by the
/// number of ranks.
Share share_of(std::int64_t step_samples, int ranks, bool average);

/// A model's output for a rank's share of a step, [samples, ...], with what its loss needs: DistributedDataParallel
/// weighs the gradients of such an output for a loss that is divided as it says. Converted to a Tensor it forgets that.
class ShareOutput : public Tensor {
 public:
  /// `samples` of this rank; `share`: nothing where nobody knows how many samples the step has.
  ShareOutput(const Tensor& output, std::int64_t samples, const std::optional<Share>& share)
      : Tensor(output), samples_(samples), share_(share) {}

  /// Throws UsageError where the batch did not know how many samples its step has, as the next two.
  const Share& share() const;
  /// The divisor of the rank's loss, summed over its samples: the `divisor` of ops::LossOptions.
  double loss_divisor() const { return share().loss_divisor; }
  /// The factor of a loss that is already the mean over the rank's samples.
  double loss_weight() const { return static_cast<double>(samples_) / loss_divisor(); }

  /// How often outputs were asked for their shares in this process.
  static std::uint64_t shares_asked();

 private:
  std::int64_t samples_;
  std::optional<Share> share_;
};

}  // namespace lockstep::comm
