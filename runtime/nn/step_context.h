// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::nn {

/// Where in the run a forward pass stands: what dropout masks are named by, so that they do not depend on the number of
/// ranks. Set it around each forward pass of a training loop; without one, masks are those of step 0 and sample 0.
class StepContext {
 public:
  /// `first_sample`: the place of the input's first row in the step's global batch.
  StepContext(std::uint64_t seed, std::uint64_t step, std::int64_t first_sample);
  ~StepContext();
  StepContext(const StepContext&) = delete;
  StepContext& operator=(const StepContext&) = delete;

  struct Values {
    std::uint64_t seed = 0;
    std::uint64_t step = 0;
    std::int64_t first_sample = 0;
  };
  /// The innermost context of this thread.
  static Values current();

 private:
  Values previous_;
};

}  // namespace lockstep::nn
