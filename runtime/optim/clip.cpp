// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/clip.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "runtime/autograd/autocast_state.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/autograd/scale_mark.h"
#include "runtime/base/error.h"
#include "runtime/kernels/arena.h"
#include "runtime/kernels/decisions.h"
#include "runtime/ops/ops.h"

namespace lockstep::optim {

namespace {

/// Gradients that lie in one allocation, as an arena's do: a flat tensor over all of them, and its parts that they are.
struct Gradients {
  Tensor flat;
  std::vector<kernels::ArenaSegment> segments;
};

const std::byte* begin_of(const Tensor& tensor) { return static_cast<const std::byte*>(tensor.data()); }

std::vector<Gradients> gradients_of(const char* operation, const std::vector<nn::Parameter>& parameters) {
  std::vector<Tensor> grads;
  for (const nn::Parameter& parameter : parameters) {
    autograd::require_unscaled(parameter.tensor, operation, "Call scaler.unscale_(optimizer) before.");
    const Tensor grad = parameter.tensor.grad();
    if (grad.defined() && grad.numel() > 0) grads.push_back(grad);
  }
  std::ranges::stable_sort(grads, {}, begin_of);
  std::vector<Gradients> groups;
  for (std::size_t first = 0, last = 0; first < grads.size(); first = last) {
    const Tensor head = grads[first];
    Gradients group;
    std::int64_t end = 0;
    for (; last < grads.size(); ++last) {
      const Tensor& grad = grads[last];
      if (grad.dtype() != head.dtype() || grad.storage().data() != head.storage().data()) break;
      const std::int64_t begin = (begin_of(grad) - begin_of(head)) / static_cast<std::int64_t>(size_of(head.dtype()));
      if (begin < end) continue;  // a parameter that was named twice
      end = begin + grad.numel();
      group.segments.push_back({.begin = begin, .end = end});
    }
    const auto offset = static_cast<std::size_t>(begin_of(head) - static_cast<std::byte*>(head.storage().data()));
    group.flat = Tensor::view(head.storage(), offset, {end}, head.dtype());
    groups.push_back(std::move(group));
  }
  return groups;
}

/// The square of each segment's Euclidean norm, float64 [segments].
Tensor squares_of(const std::vector<Gradients>& groups, Device device) {
  std::int64_t count = 0;
  for (const Gradients& group : groups) count += static_cast<std::int64_t>(group.segments.size());
  const Tensor flags = Tensor::empty({count}, DType::kFloat32, device);
  const Tensor squares = Tensor::empty({count}, DType::kFloat64, device);
  std::int64_t first = 0;
  for (const Gradients& group : groups) {
    const std::int64_t last = first + static_cast<std::int64_t>(group.segments.size());
    kernels::ArenaSteps::on(device).check_finite(group.flat, 0, group.segments, flags.rows(first, last),
                                                 squares.rows(first, last));
    first = last;
  }
  return squares;
}

/// The largest element, NaN where there is one: halves that overlap in the middle are compared until one is left.
Tensor largest_of(Tensor values) {
  while (values.numel() > 1) {
    const std::int64_t count = values.numel(), half = (count + 1) / 2;
    values = ops::maximum(values.rows(0, half), values.rows(count - half, count));
  }
  return values;
}

/// The square of the sum, or of the largest, of all absolute values: float64 [1].
Tensor square_of(const std::vector<Gradients>& groups, Device device, bool sum) {
  Tensor norm;
  for (const Gradients& group : groups) {
    for (const kernels::ArenaSegment& segment : group.segments) {
      const Tensor values = ops::abs(ops::cast(group.flat.rows(segment.begin, segment.end), DType::kFloat32));
      const Tensor own = sum ? ops::reshape(ops::sum(values), {1}) : largest_of(values);
      norm = !norm.defined() ? own : sum ? ops::add(norm, own) : ops::maximum(norm, own);
    }
  }
  return squares_of({{.flat = norm, .segments = {{.begin = 0, .end = 1}}}}, device);
}

}  // namespace

Tensor clip_grad_norm_(const std::vector<nn::Parameter>& parameters, double max_norm, const ClipNormOptions& options) {
  const bool euclidean = options.norm_type == 2;
  if (!euclidean && options.norm_type != 1 && options.norm_type != std::numeric_limits<double>::infinity()) {
    throw UsageError("clip_grad_norm_: norm_type must be 1, 2 or infinity, not " + std::to_string(options.norm_type));
  }
  if (!(max_norm >= 0)) throw UsageError("clip_grad_norm_: max_norm must be >= 0, not " + std::to_string(max_norm));
  const std::vector<Gradients> groups = gradients_of("clip_grad_norm_", parameters);
  if (groups.empty()) {
    return Tensor::zeros({1}, DType::kFloat32, parameters.empty() ? kCpu : parameters[0].tensor.device());
  }
  const Device device = groups[0].flat.device();
  const kernels::Decisions& decisions = kernels::Decisions::on(device);
  const kernels::ArenaSteps& arena_steps = kernels::ArenaSteps::on(device);
  const autograd::NoGrad unrecorded;
  const autograd::ScopedAutocastState off({});
  const Tensor squares = euclidean ? squares_of(groups, device) : square_of(groups, device, options.norm_type == 1);
  const Tensor norm = Tensor::empty({1}, DType::kFloat32, device), factor = Tensor::empty({1}, DType::kFloat32, device);
  decisions.clip_factor(squares, nullptr, {.max = max_norm}, static_cast<float*>(norm.data()),
                        static_cast<float*>(factor.data()));
  if (options.error_if_nonfinite && !std::isfinite(norm.item())) {
    throw NumericsError("clip_grad_norm_: the norm of the gradients is not finite",
                        "Leave error_if_nonfinite out where a GradScaler skips such a step.");
  }
  for (const Gradients& group : groups) {
    arena_steps.rescale(group.flat, static_cast<const float*>(factor.data()), 0.0f, 0, group.segments, group.flat, {});
  }
  return norm;
}

void clip_grad_value_(const std::vector<nn::Parameter>& parameters, double clip_value) {
  if (!(clip_value > 0)) {
    throw UsageError("clip_grad_value_: clip_value must be > 0, not " + std::to_string(clip_value));
  }
  for (const Gradients& group : gradients_of("clip_grad_value_", parameters)) {
    kernels::ArenaSteps::on(group.flat.device())
        .rescale(group.flat, nullptr, static_cast<float>(clip_value), 0, group.segments, group.flat, {});
  }
}

}  // namespace lockstep::optim
