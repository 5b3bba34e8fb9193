// SPDX-License-Identifier: Apache-2.0
// A build for a processor that has no folder of its own: the loops as the compiler makes them for all of its family.
#include "runtime/kernels/cpu/processor.h"

#include <array>

namespace lockstep::kernels::cpu {

namespace {
constexpr std::array kIsas{Isa::kBaseline};
}

std::span<const Isa> compiled_isas() { return kIsas; }
Isa widest_isa() { return Isa::kBaseline; }
const Loops& loops_for(Isa) { return baseline::all_loops(); }
void limit_onednn(Isa) {}
bool is_plain(std::string_view) { return false; }
std::vector<std::string_view> half_instructions() { return {}; }
bool has_bfloat16_instructions() { return false; }
bool onednn_has_bfloat16() { return false; }
bool onednn_has_bfloat16_tiles() { return false; }

}  // namespace lockstep::kernels::cpu
