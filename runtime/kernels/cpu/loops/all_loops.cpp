// SPDX-License-Identifier: Apache-2.0
#include LOCKSTEP_ISA_HEADER
#include "runtime/kernels/cpu/loops/families.h"

LOCKSTEP_END_ISA

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {

const Loops& all_loops() {
  static const Loops loops{kElementwiseLoops, kBroadcastLoops,     kReductionLoops, kSoftmaxLoops,  kProductLoops,
                           kAttentionLoops,   kNormalizationLoops, kArenaLoops,     kStructureLoops};
  return loops;
}

}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
