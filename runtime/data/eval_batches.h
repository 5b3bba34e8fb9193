// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/data/batch.h"
#include "runtime/data/dataset.h"
#include "runtime/data/sample_reader.h"

namespace lockstep::data {

/// One rank's shares of a data set's batches, in the data set's order, each sample once over all ranks. Every rank has
/// the same number of batches; shares may be uneven or empty.
class EvalBatches {
 public:
  /// Throws FieldError for a batch of no samples.
  EvalBatches(DatasetPtr dataset, std::int64_t global_batch, std::int64_t rank, std::int64_t world_size,
              const SampleErrors& errors = {});

  /// Number of batches.
  std::int64_t size() const;
  Batch operator[](std::int64_t at) const;

 private:
  SampleReader reader_;
  std::int64_t global_batch_;
  std::int64_t rank_;
  std::int64_t world_size_;
};

}  // namespace lockstep::data
