// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/collate.h"

#include <array>
#include <vector>

#include "runtime/kernels/cpu/narrow.h"
#include "runtime/tensor/block_layout.h"

namespace lockstep::data {

namespace {

/// [rows, shape...]
Shape batched(std::int64_t rows, const Shape& shape) {
  std::array<std::int64_t, Shape::kMaxRank + 1> extents{rows};
  std::ranges::copy(shape.extents(), extents.begin() + 1);
  return Shape(std::span<const std::int64_t>(extents.data(), static_cast<std::size_t>(shape.rank()) + 1));
}

/// A tensor of a batch.
struct Part {
  Tensor Batch::*tensor;
  Shape shape;
  DType dtype;

  std::size_t bytes() const { return static_cast<std::size_t>(shape.numel()) * size_of(dtype); }
};

/// In the order of Batch::tensors().
std::vector<Part> parts_of(const Dataset& dataset, std::int64_t rows, DType input_dtype) {
  std::vector<Part> parts{
      {&Batch::target, batched(rows, dataset.target_shape()), dataset.classes() > 0 ? DType::kInt64 : DType::kFloat32},
      {&Batch::input, batched(rows, dataset.sample_shape()), dataset.vocabulary() > 0 ? DType::kInt64 : input_dtype}};
  if (dataset.weighted() || dataset.mixed()) parts.push_back({&Batch::weight, {rows}, DType::kFloat32});
  if (dataset.mixed()) {
    parts.push_back({&Batch::other_target, {rows}, DType::kInt64});
    parts.push_back({&Batch::other_weight, {rows}, DType::kFloat32});
  }
  return parts;
}

/// Nothing of a tensor of another dtype, or none.
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

std::size_t batch_bytes(const Dataset& dataset, std::int64_t rows, DType input_dtype) {
  BlockLayout layout;
  for (const Part& part : parts_of(dataset, rows, input_dtype)) layout.add(part.bytes());
  return layout.bytes();
}

Batch make_batch(const Dataset& dataset, const BatchPlan& plan, const Storage& block, DType input_dtype) {
  Batch batch;
  BlockLayout layout;
  for (const Part& part : parts_of(dataset, plan.rank.size(), input_dtype)) {
    const std::size_t offset = layout.add(part.bytes());
    Tensor& tensor = batch.*part.tensor;
    tensor = Tensor::view(block, offset, part.shape, part.dtype);
    // A version of its own: who writes a weight in place writes no input.
    tensor.rebind(block, offset, part.dtype);
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
      reduced_(is_reduced(batch.input.dtype()) ? static_cast<std::byte*>(batch.input.data()) : nullptr),
      input_dtype_(batch.input.dtype()),
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

std::int64_t BatchRows::read(const SampleReader& reader, const SampleKey& key, std::int64_t row,
                             std::vector<UnreadSample>& unread) const {
  Sample sample = (*this)[row];
  if (reduced_ == nullptr) return reader.read(key, sample, unread);
  thread_local std::vector<float> values;  // no allocation a sample
  values.resize(input_size_);
  sample.values = values;
  const std::int64_t skipped = reader.read(key, sample, unread);
  kernels::cpu::narrow(values, input_dtype_,
                       reduced_ + static_cast<std::size_t>(row) * input_size_ * size_of(input_dtype_));
  return skipped;
}

Batch collate(const SampleReader& reader, const BatchPlan& plan, std::span<const std::int64_t> indices) {
  const std::size_t bytes = batch_bytes(reader.dataset(), plan.rank.size());
  Batch batch = make_batch(reader.dataset(), plan, Storage::allocate(bytes, kCpu));
  const BatchRows rows(reader.dataset(), batch);
  for (std::int64_t row = 0; row < plan.rank.size(); ++row) {
    const std::int64_t index = indices[static_cast<std::size_t>(plan.rank.begin + row)];
    batch.skipped_samples += rows.read(reader, {index, plan.epoch, plan.seed}, row, batch.unread);
  }
  return batch;
}

}  // namespace lockstep::data
