// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/data/batch.h"
#include "runtime/data/dataset.h"
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

/// Decodes rows `plan.rank` into tensors. `indices` holds the data set's index of each row of the step.
Batch collate(const Dataset& dataset, const BatchPlan& plan, std::span<const std::int64_t> indices);

}  // namespace lockstep::data
