// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "runtime/nn/parameter.h"

namespace lockstep::optim {

// PyTorch's torch.nn.utils.clip_grad_norm_ and clip_grad_value_, for loops that look at gradients between
// GradScaler::unscale_() and step(). Appended to the device's current stream; neither waits for it. Optimizer::step()
// clips by itself, without a pass of its own, where its options say so.

struct ClipNormOptions {
  double norm_type = 2;             ///< 1: sum of absolute values; 2: Euclidean; infinity: the largest absolute value
  bool error_if_nonfinite = false;  ///< an error where the norm is inf or NaN, for which the host waits for a GPU
};

/// Multiplies the gradients of `parameters`, of one model or several on one device, in place by
/// min(1, max_norm / (norm + 1e-6)), where norm is that of all of them together; the Euclidean one is summed in
/// float64. Returns it: float32 [1] on the device. A parameter without a gradient is left out; without any, nothing
/// happens and the norm is 0. After a backward pass of DistributedDataParallel gradients and norm are those of the
/// global batch, on every rank. Throws UsageError unless max_norm >= 0, for another norm type, and for gradients that
/// are known to be multiplied by a GradScaler's scale; NumericsError as the option says. Nothing has changed then.
Tensor clip_grad_norm_(const std::vector<nn::Parameter>& parameters, double max_norm,
                       const ClipNormOptions& options = {});

/// Limits every element of the gradients to [-clip_value, clip_value], in place; NaN stays. Throws UsageError unless
/// clip_value > 0, and as clip_grad_norm_ for scaled gradients.
void clip_grad_value_(const std::vector<nn::Parameter>& parameters, double clip_value);

}  // namespace lockstep::optim
