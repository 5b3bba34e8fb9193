// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tables of one instruction set, which LOCKSTEP_ISA names.

#include "runtime/kernels/cpu/loops/loops.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {

extern const ElementwiseLoops kElementwiseLoops;
extern const BroadcastLoops kBroadcastLoops;
extern const ReductionLoops kReductionLoops;
extern const SoftmaxLoops kSoftmaxLoops;
extern const ProductLoops kProductLoops;
extern const AttentionLoops kAttentionLoops;
extern const NormalizationLoops kNormalizationLoops;
extern const ArenaLoops kArenaLoops;
extern const StructureLoops kStructureLoops;

}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
