// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/families.h"

namespace lockstep::kernels::cuda {

// check_finite.cu and optimizer_steps.cu define them.
Function<decltype(ArenaSteps::check_finite)> check_finite;
Function<decltype(ArenaSteps::rescale)> rescale;
Function<decltype(ArenaSteps::sgd_step)> sgd_step;
Function<decltype(ArenaSteps::adam_step)> adam_step;

const ArenaSteps kArenaSteps{
    .check_finite = check_finite, .rescale = rescale, .sgd_step = sgd_step, .adam_step = adam_step};

}  // namespace lockstep::kernels::cuda
