// SPDX-License-Identifier: Apache-2.0
#include LOCKSTEP_ISA_HEADER
#include "runtime/kernels/cpu/loops/attention.inl.h"
#include "runtime/kernels/cpu/loops/families.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {

const AttentionLoops kAttentionLoops{
    .attention = attention,
    .attention_backward = attention_backward,
};

}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA

LOCKSTEP_END_ISA
