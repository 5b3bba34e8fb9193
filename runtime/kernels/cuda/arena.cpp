// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/arena.h"

#include "runtime/kernels/cuda/families.h"

namespace lockstep::kernels::cuda {

// check_finite.cu, optimizer_steps.cu, layer_steps.cu and mean_step.cu define them.
Function<decltype(ArenaSteps::check_finite)> check_finite;
Function<decltype(ArenaSteps::rescale)> rescale;
Function<decltype(ArenaSteps::layer_rates)> layer_rates;
Function<decltype(ArenaSteps::element_step)> element_step;
Function<decltype(ArenaSteps::lamb_step)> lamb_step;
Function<decltype(ArenaSteps::novograd_step)> novograd_step;
Function<decltype(ArenaSteps::mean_step)> mean_step;

const ArenaSteps kArenaSteps{.check_finite = check_finite,
                             .rescale = rescale,
                             .layer_rates = layer_rates,
                             .element_step = element_step,
                             .lamb_step = lamb_step,
                             .novograd_step = novograd_step,
                             .mean_step = mean_step};

}  // namespace lockstep::kernels::cuda
