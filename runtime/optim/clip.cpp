// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/clip.h"

#include <algorithm>
#include <string>

#include "runtime/kernels/backend.h"
#include "runtime/tensor/error.h"

namespace lockstep::optim {

namespace {

/// Gradients that lie in one allocation, as an arena's do: a flat tensor over all of them, and its parts that they are.
struct Gradients {
  Tensor flat;
  std::vector<kernels::ArenaSegment> segments;
};

const std::byte* begin_of(const Tensor& tensor) { return static_cast<const std::byte*>(tensor.data()); }

std::vector<Gradients> gradients_of(const std::vector<nn::Parameter>& parameters) {
  std::vector<Tensor> grads;
  for (const nn::Parameter& parameter : parameters) {
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

}  // namespace

Tensor clip_grad_norm_(const std::vector<nn::Parameter>& parameters, double max_norm) {
  if (!(max_norm >= 0)) throw UsageError("clip_grad_norm_: max_norm must be >= 0, not " + std::to_string(max_norm));
  const std::vector<Gradients> groups = gradients_of(parameters);
  if (groups.empty()) {
    return Tensor::zeros({1}, DType::kFloat32, parameters.empty() ? kCpu : parameters[0].tensor.device());
  }
  const Device device = groups[0].flat.device();
  const kernels::Backend& backend = kernels::backend(device);
  std::int64_t count = 0;
  for (const Gradients& group : groups) count += static_cast<std::int64_t>(group.segments.size());
  const Tensor flags = Tensor::empty({count}, DType::kFloat32, device);
  const Tensor squares = Tensor::empty({count}, DType::kFloat64, device);
  std::int64_t first = 0;
  for (const Gradients& group : groups) {
    const std::int64_t last = first + static_cast<std::int64_t>(group.segments.size());
    backend.check_finite(group.flat, 0, group.segments, flags.rows(first, last), squares.rows(first, last));
    first = last;
  }
  const Tensor norm = Tensor::empty({1}, DType::kFloat32, device), factor = Tensor::empty({1}, DType::kFloat32, device);
  backend.clip_factor(squares, nullptr, {.max = max_norm}, static_cast<float*>(norm.data()),
                      static_cast<float*>(factor.data()));
  for (const Gradients& group : groups) {
    backend.rescale(group.flat, static_cast<const float*>(factor.data()), 0.0f, 0, group.segments, group.flat, {});
  }
  return norm;
}

void clip_grad_value_(const std::vector<nn::Parameter>& parameters, double clip_value) {
  if (!(clip_value > 0)) {
    throw UsageError("clip_grad_value_: clip_value must be > 0, not " + std::to_string(clip_value));
  }
  for (const Gradients& group : gradients_of(parameters)) {
    kernels::backend(group.flat.device())
        .rescale(group.flat, nullptr, static_cast<float>(clip_value), 0, group.segments, group.flat, {});
  }
}

}  // namespace lockstep::optim
