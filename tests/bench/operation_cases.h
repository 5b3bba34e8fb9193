// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "runtime/autograd/engine.h"
#include "runtime/kernels/assign.h"
#include "runtime/ops/ops.h"
#include "tests/bench/stopwatch.h"

// Differentiable operations as beside_pytorch.py measures them: a line NAME DTYPE FORWARD [BOTH] a case and dtype, in
// milliseconds of processor time, BOTH with the backward pass.

namespace lockstep::bench {

struct OperationCase {
  std::string name;
  std::vector<Shape> inputs;  ///< floating, in [-1, 1)
  std::function<Tensor(const std::vector<Tensor>& inputs)> run;
  std::size_t differentiated = 0;  ///< so many of the inputs get gradients; 0: no backward pass
};

inline Tensor random_tensor(const Shape& shape, DType dtype, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<float> values(static_cast<std::size_t>(shape.numel()));
  for (float& value : values) value = static_cast<float>(generator() * 0x1p-31 - 1.0);
  const Tensor tensor = Tensor::empty(shape, dtype);
  kernels::cast(Tensor::from(values, shape), tensor);
  return tensor;
}

/// int64 in [0, extent)
inline Tensor random_indices(const Shape& shape, std::int64_t extent) {
  std::mt19937 generator(9);
  std::vector<std::int64_t> all(static_cast<std::size_t>(shape.numel()));
  for (std::int64_t& index : all) index = generator() % extent;
  return Tensor::from(all, shape);
}

/// 2x3x4
inline std::string dimensions(const Shape& shape) { return fmt::format("{}", fmt::join(shape.extents(), "x")); }

inline void measure(const OperationCase& at, DType dtype) {
  std::vector<Tensor> inputs;
  for (const Shape& shape : at.inputs) {
    inputs.push_back(random_tensor(shape, dtype, static_cast<std::uint32_t>(inputs.size())));
  }
  fmt::print("{} {} {:.6f}", at.name, name_of(dtype), milliseconds_of([&] { at.run(inputs); }));
  if (at.differentiated > 0) {
    const std::vector<Tensor> of(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(at.differentiated));
    for (const Tensor& input : of) input.set_requires_grad(true);
    const Tensor y = at.run(inputs);
    const Tensor dy = random_tensor(y.shape(), y.dtype(), 77);
    fmt::print(" {:.6f}", milliseconds_of([&] { autograd::grad(at.run(inputs), of, dy); }));
  }
  fmt::print("\n");
}

/// The cases of these names; without names all.
inline void measure_all(const std::vector<OperationCase>& cases, const std::vector<std::string>& names) {
  for (const OperationCase& at : cases) {
    if (!names.empty() && std::ranges::find(names, at.name) == names.end()) continue;
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) measure(at, dtype);
  }
}

}  // namespace lockstep::bench
