// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::kernels {

/// Where a step stands in the run.
struct StepPosition {
  std::uint64_t step = 0;
  std::int64_t first_sample = 0;  ///< of this rank's share in the step's global batch
};

}  // namespace lockstep::kernels
