// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/factories.h"

#include <numeric>
#include <vector>

#include "runtime/kernels/assign.h"
#include "runtime/kernels/pointwise.h"
#include "runtime/kernels/scans.h"
#include "runtime/ops/result.h"

namespace lockstep::ops {

namespace {

constexpr std::int64_t kExactInFloat32 = 1 << 24;

Tensor filled(const Tensor& tensor, double value) {
  kernels::fill(tensor, value);
  return tensor;
}

Tensor empty(const Shape& shape, const Placement& placement) {
  return Tensor::empty(shape, placement.dtype, placement.device);
}

Tensor random(kernels::Distribution distribution, double first, double second, const kernels::RandomKey& key,
              std::int64_t first_element, const Tensor& out) {
  kernels::Pointwise::on(out.device()).random(distribution, first, second, key, first_element, out);
  return out;
}

/// The numbers as the placement says.
Tensor placed(const std::vector<double>& values, const Shape& shape, const Placement& placement) {
  const Tensor there = Tensor::empty(shape, placement.dtype);
  kernels::cast(Tensor::from(values, shape), there);
  return there.to(placement.device);
}

}  // namespace

Tensor full(const Shape& shape, double value, const Placement& placement) {
  return filled(empty(shape, placement), value);
}
Tensor ones(const Shape& shape, const Placement& placement) { return full(shape, 1, placement); }

Tensor full_like(const Tensor& like, double value) {
  require_defined(like, "full_like", "the tensor");
  return filled(empty_like(like), value);
}
Tensor ones_like(const Tensor& like) { return full_like(like, 1); }
Tensor zeros_like(const Tensor& like) {
  require_defined(like, "zeros_like", "the tensor");
  return Tensor::zeros(like.shape(), like.dtype(), like.device());
}

Tensor new_full(const Tensor& like, const Shape& shape, double value) {
  return full(shape, value, {like.dtype(), like.device()});
}
Tensor new_zeros(const Tensor& like, const Shape& shape) { return Tensor::zeros(shape, like.dtype(), like.device()); }

Tensor arange(std::int64_t n, const Placement& placement) {
  const Shape shape{n};  // refuses a negative n
  if (placement.device != kCpu && n > 0 && n <= kExactInFloat32) {
    // A running sum of 0, 1, 1, ...: a step that is being captured may copy nothing from the host.
    const Tensor steps = ones({1, n, 1}, {DType::kFloat32, placement.device}), sums = empty_like(steps);
    filled(steps.detach(shape).detach_rows(0, 1), 0);
    kernels::Scans::on(placement.device).scan({}, steps, false, sums);
    if (placement.dtype == DType::kFloat32) return sums.detach(shape);
    const Tensor numbers = empty(shape, placement);
    kernels::cast(sums.detach(shape), numbers);
    return numbers;
  }
  std::vector<double> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 0.0);
  return placed(values, shape, placement);
}

Tensor eye(std::int64_t n, const Placement& placement) {
  const Shape shape{n, n};
  std::vector<double> values(static_cast<std::size_t>(shape.numel()), 0.0);
  for (std::int64_t i = 0; i < n; ++i) values[static_cast<std::size_t>(i * n + i)] = 1;
  return placed(values, shape, placement);
}

Tensor uniform(const Shape& shape, const kernels::RandomKey& key, const UniformOptions& options,
               const Placement& placement) {
  return random(kernels::Distribution::kUniform, options.low, options.high, key, options.first_element,
                empty(shape, placement));
}

Tensor normal(const Shape& shape, const kernels::RandomKey& key, const NormalOptions& options,
              const Placement& placement) {
  return random(kernels::Distribution::kNormal, options.mean, options.deviation, key, options.first_element,
                empty(shape, placement));
}

}  // namespace lockstep::ops
