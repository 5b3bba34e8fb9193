// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/data/batch.h"
#include "runtime/data/dataset.h"
#include "runtime/data/sample_reader.h"
#include "runtime/data/sampler.h"

namespace lockstep::data {

/// Which rows of a step's global batch one batch holds.
struct BatchPlan {
  std::uint64_t epoch = 0;
  std::uint64_t seed = 0;
  Range step;   ///< [0, samples of the step)
  Range micro;  ///< this micro-batch's part of the step, over all ranks
  Range rank;   ///< this rank's part of the micro-batch
};

/// Bytes that a batch of `rows` samples takes of its block. `input_dtype`: of inputs of numbers, float32, float16 or
/// bfloat16.
std::size_t batch_bytes(const Dataset& dataset, std::int64_t rows, DType input_dtype = DType::kFloat32);

/// A batch for rows `plan.rank` whose tensors lie in `block`, one behind the other in the order of Batch::tensors(),
/// not yet written. Throws ShapeError where the block has less than batch_bytes().
Batch make_batch(const Dataset& dataset, const BatchPlan& plan, const Storage& block,
                 DType input_dtype = DType::kFloat32);

/// The rows of a batch, to be written; several threads may write different ones. The batch must outlive this.
class BatchRows {
 public:
  BatchRows() = default;
  BatchRows(const Dataset& dataset, const Batch& batch);
  /// Writes the sample that `key` names into a row, as SampleReader::read() does. An input of 16 bits is drawn in
  /// float32, in memory that each thread has for one sample, and rounded to nearest even.
  std::int64_t read(const SampleReader& reader, const SampleKey& key, std::int64_t row,
                    std::vector<UnreadSample>& unread) const;

 private:
  /// An input of all rows.
  struct Input {
    std::byte* data = nullptr;
    DType dtype = DType::kFloat32;
    std::size_t size = 0;  ///< elements of a row

    std::byte* row(std::int64_t row) const { return data + static_cast<std::size_t>(row) * size * size_of(dtype); }
  };

  Sample operator[](std::int64_t row) const;

  std::vector<Input> inputs_;
  Sample all_;  ///< but for inputs
  std::size_t target_size_ = 0;
};

/// Decodes rows `plan.rank` into memory of the batch's own. `indices` holds the data set's index of each row of the
/// step.
Batch collate(const SampleReader& reader, const BatchPlan& plan, std::span<const std::int64_t> indices);

}  // namespace lockstep::data
