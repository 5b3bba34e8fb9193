// SPDX-License-Identifier: Apache-2.0
#include LOCKSTEP_ISA_HEADER
#include "runtime/kernels/cpu/loops/elementwise.inl.h"
#include "runtime/kernels/cpu/loops/families.h"
#include "runtime/kernels/cpu/loops/random.inl.h"
#include "runtime/kernels/cpu/loops/unary.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {

const ElementwiseLoops kElementwiseLoops{
    .convert = convert,
    .accumulate = accumulate,
    .scale = scale,
    .unary = unary,
    .unary_backward = unary_backward,
    .dropout = dropout,
    .random = random,
};

}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA

LOCKSTEP_END_ISA
