// SPDX-License-Identifier: Apache-2.0
// A build for another processor: the loops as the compiler makes them for all processors of its family.
#include "runtime/kernels/cpu/processor.h"

namespace lockstep::kernels::cpu {

Isa widest_isa() { return Isa::kBaseline; }
const Loops& loops_for(Isa) { return baseline::all_loops(); }
void limit_onednn(Isa) {}
std::vector<std::string_view> half_instructions() { return {}; }
bool has_bfloat16_instructions() { return false; }

}  // namespace lockstep::kernels::cpu
