// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "runtime/autograd/node.h"
#include "runtime/tensor/tensor.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::autograd::testing {

using kernels::testing::values_of;

/// A float64 leaf with these elements that requires a gradient.
inline Tensor leaf(const std::vector<double>& values) {
  const Tensor tensor = Tensor::from(values, {static_cast<std::int64_t>(values.size())});
  tensor.set_requires_grad(true);
  return tensor;
}

/// The identity as a recorded operation that calls `in_backward` when its gradient is computed.
inline Tensor probe(const Tensor& x, std::function<void()> in_backward) {
  const Tensor y = x.detach();
  record(y, "probe", {x}, {.fused = [in_backward = std::move(in_backward)](const Tensor& dy, const BackwardContext&) {
           in_backward();
           return std::vector<Tensor>{dy};
         }});
  return y;
}

/// Gives the leaf a slice of its own in a gradient arena.
inline Tensor give_slot(const Tensor& leaf, DType dtype = DType::kFloat32) {
  const Tensor slot = Tensor::zeros(leaf.shape(), dtype);
  meta_of(leaf).slot = slot;
  return slot;
}

}  // namespace lockstep::autograd::testing
