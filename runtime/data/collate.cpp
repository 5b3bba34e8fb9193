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

/// A row of a tensor of one of two dtypes; nothing where it is of the other one, or undefined.
template <class T>
std::span<T> row_of(const Tensor& rows, DType dtype, std::int64_t row, std::int64_t size) {
  if (!rows.defined() || rows.dtype() != dtype) return {};
  return rows.mutable_as<T>().subspan(static_cast<std::size_t>(row * size), static_cast<std::size_t>(size));
}

}  // namespace

Batch collate(const Dataset& dataset, const BatchPlan& plan, std::span<const std::int64_t> indices) {
  const std::int64_t rows = plan.rank.size();
  const auto dtype = [](std::int64_t count) { return count > 0 ? DType::kInt64 : DType::kFloat32; };
  Batch batch;
  batch.input = Tensor::empty(batched(rows, dataset.sample_shape()), dtype(dataset.vocabulary()));
  batch.target = Tensor::empty(batched(rows, dataset.target_shape()), dtype(dataset.classes()));
  if (dataset.weighted() || dataset.mixed()) batch.weight = Tensor::empty({rows}, DType::kFloat32);
  if (dataset.mixed()) {
    batch.other_target = Tensor::empty({rows}, DType::kInt64);
    batch.other_weight = Tensor::empty({rows}, DType::kFloat32);
  }
  batch.epoch = plan.epoch;
  batch.first_sample = plan.rank.begin;
  batch.global_samples = plan.micro.size();
  batch.step_samples = plan.step.size();

  const std::int64_t input_size = dataset.sample_shape().numel();
  const std::int64_t target_size = dataset.target_shape().numel();
  for (std::int64_t row = 0; row < rows; ++row) {
    const Sample sample{.values = row_of<float>(batch.input, DType::kFloat32, row, input_size),
                        .tokens = row_of<std::int64_t>(batch.input, DType::kInt64, row, input_size),
                        .target = row_of<float>(batch.target, DType::kFloat32, row, target_size),
                        .labels = row_of<std::int64_t>(batch.target, DType::kInt64, row, target_size),
                        .weight = row_of<float>(batch.weight, DType::kFloat32, row, 1),
                        .other_label = row_of<std::int64_t>(batch.other_target, DType::kInt64, row, 1),
                        .other_weight = row_of<float>(batch.other_weight, DType::kFloat32, row, 1)};
    dataset.get({indices[static_cast<std::size_t>(plan.rank.begin + row)], plan.epoch, plan.seed}, sample);
  }
  return batch;
}

}  // namespace lockstep::data
