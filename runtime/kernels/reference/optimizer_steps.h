// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "runtime/kernels/arena.h"

namespace lockstep::kernels::reference {

// The optimizers' steps of kArenaSteps.
std::remove_pointer_t<decltype(ArenaSteps::layer_rates)> layer_rates;
std::remove_pointer_t<decltype(ArenaSteps::element_step)> element_step;
std::remove_pointer_t<decltype(ArenaSteps::lamb_step)> lamb_step;
std::remove_pointer_t<decltype(ArenaSteps::novograd_step)> novograd_step;

}  // namespace lockstep::kernels::reference
