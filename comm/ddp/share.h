// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::comm {

/// What makes the ranks' losses and gradients those of the mean over all samples of a step, however uneven the ranks'
/// shares are. A rank's loss is the sum over its samples divided by `loss_divisor`: its mean where the shares are even.
/// The divisor is the size of the largest share, so that 16-bit gradients of uneven shares are no larger than those of
/// a mean.
struct Share {
  double loss_divisor = 1.0;
  float gradient_factor = 1.0f;  ///< what gradients are multiplied by, in float32, before they are reduced
  double loss_factor = 1.0;      ///< a rank's losses times this, summed over micro-batches and ranks, are the mean
};

/// Of a step of `step_samples` > 0 over all ranks and micro-batches. `average`: the reduction divides by the ranks.
Share share_of(std::int64_t step_samples, int ranks, bool average);

}  // namespace lockstep::comm
