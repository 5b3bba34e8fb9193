// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::kernels {

/// Where a step stands in the run.
struct StepPosition {
  std::uint64_t step = 0;
  std::int64_t first_sample = 0;  ///< of this rank's share in the step's global batch
};

/// A key of the counter-based generator: the same key and element index give the same mask on every rank and device.
struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t layer = 0;
  std::uint32_t call = 0;  ///< of the layer within the step, from 0 to 2^24 - 1
  /// In device memory, read when the kernel runs: its step is added to `step`, its first sample, in elements, to the
  /// first element. It differs from one replay of a captured step to the next. Null: nothing is added.
  const StepPosition* position = nullptr;
};

/// Names the random numbers of a tensor; the index of an element tells them apart. The same key gives the same numbers
/// on every device, up to the rounding of the functions that shape them.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t stream = 0;  ///< tells the tensors of a step apart
};

}  // namespace lockstep::kernels
