// SPDX-License-Identifier: Apache-2.0
#include LOCKSTEP_ISA_HEADER
#include "runtime/kernels/cpu/loops/families.h"
#include "runtime/kernels/cpu/loops/products.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {

const ProductLoops kProductLoops{
    .multiply_strip = multiply_strip,
};

}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA

LOCKSTEP_END_ISA
