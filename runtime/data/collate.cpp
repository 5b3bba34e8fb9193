// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/collate.h"

#include <array>

namespace lockstep::data {

namespace {

/// [rows, shape...]
Shape batched(std::int64_t rows, const Shape& shape) {
  std::array<std::int64_t, Shape::kMaxRank + 1> extents{rows};
  std::ranges::copy(shape.extents(), extents.begin() + 1);
  return Shape(std::span<const std::int64_t>(extents.data(), static_cast<std::size_t>(shape.rank()) + 1));
}

}  // namespace

Batch collate(const Dataset& dataset, const BatchPlan& plan, std::span<const std::int64_t> indices) {
  const std::int64_t rows = plan.rank.size();
  const bool classes = dataset.classes() > 0;
  Batch batch;
  batch.input = Tensor::empty(batched(rows, dataset.sample_shape()), DType::kFloat32);
  batch.target = classes ? Tensor::empty({rows}, DType::kInt64)
                         : Tensor::empty(batched(rows, dataset.target_shape()), DType::kFloat32);
  batch.epoch = plan.epoch;
  batch.first_sample = plan.rank.begin;
  batch.global_samples = plan.micro.size();
  batch.step_samples = plan.step.size();

  const auto input_size = static_cast<std::size_t>(dataset.sample_shape().numel());
  const auto target_size = static_cast<std::size_t>(classes ? 0 : dataset.target_shape().numel());
  const std::span<float> inputs = batch.input.mutable_as<float>();
  const std::span<std::int64_t> labels = classes ? batch.target.mutable_as<std::int64_t>() : std::span<std::int64_t>();
  const std::span<float> values = classes ? std::span<float>() : batch.target.mutable_as<float>();
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    const std::int64_t index = indices[static_cast<std::size_t>(plan.rank.begin) + row];
    Target target;
    if (!classes) target.values = values.subspan(row * target_size, target_size);
    dataset.get({index, plan.epoch, plan.seed}, inputs.subspan(row * input_size, input_size), target);
    if (classes) labels[row] = target.label;
  }
  return batch;
}

}  // namespace lockstep::data
