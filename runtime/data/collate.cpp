// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/collate.h"

#include <vector>

#include "runtime/kernels/cpu/narrow.h"
#include "runtime/tensor/block_layout.h"

namespace lockstep::data {

namespace {

/// A tensor of a batch.
struct Part {
  Tensor* tensor;
  Shape shape;
  DType dtype;

  std::size_t bytes() const { return static_cast<std::size_t>(shape.numel()) * size_of(dtype); }
};

/// The tensors of `batch` with the shapes and dtypes that they will have, in the order of Batch::tensors(). Resizes
/// more_inputs.
std::vector<Part> parts_of(const Dataset& dataset, std::int64_t rows, DType input_dtype, Batch& batch) {
  const std::vector<InputSpec> inputs = dataset.inputs();
  batch.more_inputs.resize(inputs.size() - 1);
  const DType target_dtype = dataset.classes() > 0 ? DType::kInt64 : DType::kFloat32;
  std::vector<Part> parts{{&batch.target, dataset.target_shape().batched(rows), target_dtype}};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const DType dtype = inputs[i].vocabulary > 0 ? DType::kInt64 : input_dtype;
    parts.push_back({i == 0 ? &batch.input : &batch.more_inputs[i - 1], inputs[i].shape.batched(rows), dtype});
  }
  if (dataset.weighted() || dataset.mixed()) parts.push_back({&batch.weight, {rows}, DType::kFloat32});
  if (dataset.mixed()) {
    parts.push_back({&batch.other_target, {rows}, DType::kInt64});
    parts.push_back({&batch.other_weight, {rows}, DType::kFloat32});
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
  Batch batch;
  BlockLayout layout;
  for (const Part& part : parts_of(dataset, rows, input_dtype, batch)) layout.add(part.bytes());
  return layout.bytes();
}

Batch make_batch(const Dataset& dataset, const BatchPlan& plan, const Storage& block, DType input_dtype) {
  Batch batch;
  BlockLayout layout;
  for (const Part& part : parts_of(dataset, plan.rank.size(), input_dtype, batch)) {
    const std::size_t offset = layout.add(part.bytes());
    *part.tensor = Tensor::view(block, offset, part.shape, part.dtype);
    // A version of its own: who writes a weight in place writes no input.
    part.tensor->rebind(block, offset, part.dtype);
  }
  batch.epoch = plan.epoch;
  batch.first_sample = plan.rank.begin;
  batch.global_samples = plan.micro.size();
  batch.step_samples = plan.step.size();
  return batch;
}

BatchRows::BatchRows(const Dataset& dataset, const Batch& batch)
    : all_{.target = elements_of<float>(batch.target, DType::kFloat32),
           .labels = elements_of<std::int64_t>(batch.target, DType::kInt64),
           .weight = elements_of<float>(batch.weight, DType::kFloat32),
           .other_label = elements_of<std::int64_t>(batch.other_target, DType::kInt64),
           .other_weight = elements_of<float>(batch.other_weight, DType::kFloat32)},
      target_size_(static_cast<std::size_t>(dataset.target_shape().numel())) {
  const std::vector<InputSpec> specs = dataset.inputs();
  const std::vector<Tensor> inputs = batch.inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    inputs_.push_back({static_cast<std::byte*>(inputs[i].data()), inputs[i].dtype(),
                       static_cast<std::size_t>(specs[i].shape.numel())});
  }
}

Sample BatchRows::operator[](std::int64_t row) const {
  return {.target = row_of(all_.target, row, target_size_),
          .labels = row_of(all_.labels, row, target_size_),
          .weight = row_of(all_.weight, row, 1),
          .other_label = row_of(all_.other_label, row, 1),
          .other_weight = row_of(all_.other_weight, row, 1)};
}

std::int64_t BatchRows::read(const SampleReader& reader, const SampleKey& key, std::int64_t row,
                             std::vector<UnreadSample>& unread) const {
  Sample sample = (*this)[row];
  thread_local std::vector<std::vector<float>> wide;  // of each input of 16 bits: no allocation a sample
  wide.resize(std::max(wide.size(), inputs_.size()));
  std::vector<InputRow> rows(inputs_.size());
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    std::byte* const data = input.row(row);
    if (input.dtype == DType::kInt64) {
      rows[i].tokens = {reinterpret_cast<std::int64_t*>(data), input.size};
    } else if (input.dtype == DType::kFloat32) {
      rows[i].values = {reinterpret_cast<float*>(data), input.size};
    } else {
      wide[i].resize(input.size);
      rows[i].values = wide[i];
    }
  }
  sample.values = rows[0].values;
  sample.tokens = rows[0].tokens;
  sample.more_inputs = std::span(rows).subspan(1);
  const std::int64_t skipped = reader.read(key, sample, unread);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (is_reduced(inputs_[i].dtype)) kernels::cpu::narrow(wide[i], inputs_[i].dtype, inputs_[i].row(row));
  }
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
