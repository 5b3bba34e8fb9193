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

/// Of a tensor of one of two dtypes; nothing where it is of the other one, or undefined.
template <class T>
std::span<T> elements_of(const Tensor& rows, DType dtype) {
  if (!rows.defined() || rows.dtype() != dtype) return {};
  return rows.mutable_as<T>();
}

/// Nothing of what a sample does not have.
template <class T>
std::span<T> row_of(std::span<T> all, std::int64_t row, std::size_t size) {
  return all.empty() ? all : all.subspan(static_cast<std::size_t>(row) * size, size);
}

}  // namespace

Batch make_batch(const Dataset& dataset, const BatchPlan& plan) {
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
  return batch;
}

BatchRows::BatchRows(const Dataset& dataset, const Batch& batch)
    : all_{.values = elements_of<float>(batch.input, DType::kFloat32),
           .tokens = elements_of<std::int64_t>(batch.input, DType::kInt64),
           .target = elements_of<float>(batch.target, DType::kFloat32),
           .labels = elements_of<std::int64_t>(batch.target, DType::kInt64),
           .weight = elements_of<float>(batch.weight, DType::kFloat32),
           .other_label = elements_of<std::int64_t>(batch.other_target, DType::kInt64),
           .other_weight = elements_of<float>(batch.other_weight, DType::kFloat32)},
      input_size_(static_cast<std::size_t>(dataset.sample_shape().numel())),
      target_size_(static_cast<std::size_t>(dataset.target_shape().numel())) {}

Sample BatchRows::operator[](std::int64_t row) const {
  return {.values = row_of(all_.values, row, input_size_),
          .tokens = row_of(all_.tokens, row, input_size_),
          .target = row_of(all_.target, row, target_size_),
          .labels = row_of(all_.labels, row, target_size_),
          .weight = row_of(all_.weight, row, 1),
          .other_label = row_of(all_.other_label, row, 1),
          .other_weight = row_of(all_.other_weight, row, 1)};
}

Batch collate(const SampleReader& reader, const BatchPlan& plan, std::span<const std::int64_t> indices) {
  Batch batch = make_batch(reader.dataset(), plan);
  const BatchRows rows(reader.dataset(), batch);
  for (std::int64_t row = 0; row < plan.rank.size(); ++row) {
    const std::int64_t index = indices[static_cast<std::size_t>(plan.rank.begin + row)];
    batch.skipped_samples += reader.read({index, plan.epoch, plan.seed}, rows[row]);
  }
  return batch;
}

}  // namespace lockstep::data
