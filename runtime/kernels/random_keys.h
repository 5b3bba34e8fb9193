// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/kernels/step_position.h"

namespace lockstep::kernels {

/// A key of the counter-based generator: the same key and element index give the same mask on every rank and device.
struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t layer = 0;
  std::uint32_t call = 0;  ///< of the layer within the step, from 0 to 2^24 - 1
  /// Device memory, read when the kernel runs and added to `step` and, in elements, to the first element: what differs
  /// from one replay of a captured step to the next. Null: nothing is added.
  const StepPosition* position = nullptr;
};

/// What a random number of a tensor is named by, beside its element: the same key gives the same numbers on every
/// device, to the rounding of the functions that shape them.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t stream = 0;  ///< tells the tensors of a step apart
};

}  // namespace lockstep::kernels
