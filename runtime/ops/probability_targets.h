// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/ops/losses.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// cross_entropy() whose targets are probabilities of the classes, of the shape of the logits, made of operations.
[[nodiscard]] Tensor cross_entropy_of_probabilities(const Tensor& logits, const Tensor& targets,
                                                    const LossOptions& options);

}  // namespace lockstep::ops
