// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/data/batch.h"
#include "runtime/kernels/random_keys.h"

namespace lockstep::step {

using kernels::StepPosition;

/// The inputs of one step, on its device. Steps of the same shapes find it in the same place on a GPU, so that a
/// captured step can be launched again.
struct StepInputs {
  std::uint64_t step = 0;                  ///< counted from 1
  std::vector<data::Batch> micro_batches;  ///< this rank's shares
  Tensor positions;                        ///< uint8: StepPosition [micro-batches]
  /// float32 [2], which ranks add up: 1 where this rank was told to stop, and its skipped samples.
  Tensor told;

  const StepPosition* position(std::size_t micro_batch) const {
    return static_cast<const StepPosition*>(positions.data()) + micro_batch;
  }
};

}  // namespace lockstep::step
