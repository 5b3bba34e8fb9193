// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/ops/types.h"
#include "runtime/tensor/tensor.h"

// New tensors, outside the graph, beside Tensor::zeros and Tensor::from.

namespace lockstep::ops {

/// The dtype and device of a new tensor.
struct Placement {
  DType dtype = DType::kFloat32;
  Device device = kCpu;
};

/// `value` in every element, converted to the dtype.
[[nodiscard]] Tensor full(const Shape& shape, double value, const Placement& placement = {});
[[nodiscard]] Tensor ones(const Shape& shape, const Placement& placement = {});

/// New tensors with the shape, dtype and device of `like`.
[[nodiscard]] Tensor full_like(const Tensor& like, double value);
[[nodiscard]] Tensor ones_like(const Tensor& like);
[[nodiscard]] Tensor zeros_like(const Tensor& like);

/// New tensors of `shape`, with the dtype and device of `like`.
[[nodiscard]] Tensor new_full(const Tensor& like, const Shape& shape, double value);
[[nodiscard]] Tensor new_zeros(const Tensor& like, const Shape& shape);

/// 0, 1, ..., n - 1. A step that is captured can make up to 2^24 of them; more are made on the CPU and copied.
[[nodiscard]] Tensor arange(std::int64_t n, const Placement& placement = {});
/// The identity matrix [n, n]; made on the CPU and copied, which a step that is captured cannot do.
[[nodiscard]] Tensor eye(std::int64_t n, const Placement& placement = {});

/// Random numbers of a floating dtype, named by key and element: element i is number first_element + i of the key's
/// stream. The same key gives the same numbers on every device, to rounding, and a rank that draws rows of a global
/// tensor draws what one rank would. A captured step repeats the numbers of the key that it was captured with. `high`
/// itself may come by rounding.
struct UniformOptions {
  double low = 0;
  double high = 1;
  std::int64_t first_element = 0;
};
[[nodiscard]] Tensor uniform(const Shape& shape, const RandomKey& key, const UniformOptions& options = {},
                             const Placement& placement = {});
struct NormalOptions {
  double mean = 0;
  double deviation = 1;  ///< standard deviation
  std::int64_t first_element = 0;
};
[[nodiscard]] Tensor normal(const Shape& shape, const RandomKey& key, const NormalOptions& options = {},
                            const Placement& placement = {});

}  // namespace lockstep::ops
