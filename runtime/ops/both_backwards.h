// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "runtime/autograd/node.h"

namespace lockstep::ops {

/// The backward of an operation that keeps one struct for both ways: its members fused() and recorded(). One function
/// that chooses is one allocation where two that share the struct would be three.
template <class Saved>
[[nodiscard]] autograd::Backward both_of(Saved saved, autograd::ActivationDerivative derivative = {}) {
  return {.recorded =
              [kept = std::move(saved)](const Tensor& dy, const autograd::BackwardContext& context) {
                return context.recorded() ? kept.recorded(dy, context) : kept.fused(dy, context);
              },
          .derivative = std::move(derivative)};
}

}  // namespace lockstep::ops
