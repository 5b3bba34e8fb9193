// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/kernels/backend.h"

namespace lockstep::nn {

/// Where in the run a forward pass stands: what dropout masks are named by, so that they do not depend on the number of
/// ranks. Set it around each forward pass of a training loop; without one, masks are those of step 0 and sample 0.
class StepContext {
 public:
  /// `first_sample`: the place of the input's first row in the step's global batch.
  StepContext(std::uint64_t seed, std::uint64_t step, std::int64_t first_sample);
  /// The same with the place in memory of the device on which the pass runs, read when its kernels do: it may be
  /// another one each time that a captured pass is launched.
  StepContext(std::uint64_t seed, const kernels::StepPosition* position);
  ~StepContext();
  StepContext(const StepContext&) = delete;
  StepContext& operator=(const StepContext&) = delete;

  struct Values {
    std::uint64_t seed = 0;
    std::uint64_t step = 0;
    std::int64_t first_sample = 0;
    const kernels::StepPosition* position = nullptr;  ///< null: nothing is added to the others
  };
  /// The innermost context of this thread.
  static Values current();

 private:
  Values previous_;
};

}  // namespace lockstep::nn
