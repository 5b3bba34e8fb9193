// SPDX-License-Identifier: Apache-2.0
#include LOCKSTEP_ISA_HEADER
#include "runtime/kernels/cpu/loops/arena.inl.h"
#include "runtime/kernels/cpu/loops/families.h"
#include "runtime/kernels/cpu/loops/layers.inl.h"
#include "runtime/kernels/cpu/loops/rank_reduce.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {

const ArenaLoops kArenaLoops{
    .rescale = rescale,
    .gradient_squares = gradient_squares,
    .largest_gradient = largest_gradient,
    .element_steps = element_loops(std::type_identity<ElementRule>()),
    .lamb_moments = lamb_moments,
    .lamb_weights = lamb_weights,
    .novograd_step = novograd_step,
    .mean_step = mean_step,
    .rank_reduce = rank_reduce,
};

}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA

LOCKSTEP_END_ISA
