// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "amp/autocast/policy.h"
#include "runtime/kernels/losses.h"

namespace lockstep::ops {

/// The weights of the targets of a loss over classes. Weights have no gradient.
struct ClassWeights {
  Tensor weight;                             ///< of each class, [classes]; may be undefined
  Tensor sample_weight;                      ///< of each target, of its shape; may be undefined
  std::optional<std::int64_t> ignore_index;  ///< a target that counts for nothing
};

/// The targets of a loss over classes, by one rule for all such losses: a row weighs weight[target] * sample_weight,
/// and 0 where its target is ignored. x [..., classes] has the loss's dtype. A target that is no class is a UsageError
/// on the CPU and makes the loss NaN on a GPU.
struct ClassTargets {
  kernels::CrossEntropyTargets targets;  ///< classes [rows]: 0 in place of ignored ones

  ClassTargets(amp::Op op, const Tensor& x, DType dtype, const Tensor& classes, const ClassWeights& weights);

  /// The weight of each row, [rows]; undefined where all are 1.
  Tensor row_weights() const;
};

}  // namespace lockstep::ops
