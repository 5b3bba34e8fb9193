// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "runtime/autograd/node.h"

namespace lockstep::ops {

/// The backward functions of an operation that keeps one struct for both: its members fused() and recorded().
template <class Saved>
autograd::Backward both_of(Saved saved, autograd::ActivationDerivative derivative = {}) {
  const auto kept = std::make_shared<const Saved>(std::move(saved));
  return {
      .fused = [kept](const Tensor& dy, const autograd::BackwardContext& context) { return kept->fused(dy, context); },
      .recorded = [kept](const Tensor& dy,
                         const autograd::BackwardContext& context) { return kept->recorded(dy, context); },
      .derivative = std::move(derivative)};
}

}  // namespace lockstep::ops
