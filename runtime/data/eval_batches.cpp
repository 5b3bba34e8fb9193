// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/eval_batches.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/data/collate.h"

namespace lockstep::data {

EvalBatches::EvalBatches(DatasetPtr dataset, std::int64_t global_batch, std::int64_t rank, std::int64_t world_size,
                         const SampleErrors& errors)
    : reader_(std::move(dataset), errors), global_batch_(global_batch), rank_(rank), world_size_(world_size) {
  if (global_batch < 1) throw FieldError("data.eval_batch", "must be >= 1, is " + std::to_string(global_batch));
}

std::int64_t EvalBatches::size() const { return (reader_.dataset().size() + global_batch_ - 1) / global_batch_; }

Batch EvalBatches::operator[](std::int64_t at) const {
  const std::int64_t first = at * global_batch_;
  const Range whole{0, std::min(global_batch_, reader_.dataset().size() - first)};
  std::vector<std::int64_t> indices(static_cast<std::size_t>(whole.size()));
  std::iota(indices.begin(), indices.end(), first);
  return collate(reader_, {.step = whole, .micro = whole, .rank = share(whole, rank_, world_size_)}, indices);
}

}  // namespace lockstep::data
