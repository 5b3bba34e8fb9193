// SPDX-License-Identifier: Apache-2.0
#include LOCKSTEP_ISA_HEADER
#include "runtime/kernels/cpu/loops/broadcast.inl.h"
#include "runtime/kernels/cpu/loops/families.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {

const BroadcastLoops kBroadcastLoops{
    .binary = binary,
    .ternary = ternary,
    .expand = expand,
    .binary_with_number = binary_with_number,
    .binary_channels = binary_channels,
};

}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA

LOCKSTEP_END_ISA
