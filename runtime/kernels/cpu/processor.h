// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "runtime/kernels/cpu/isa.h"
#include "runtime/kernels/cpu/loops/loops.h"

// Each family of processors implements these functions: x86/, arm/, or other/ for all others.

namespace lockstep::kernels::cpu {

/// The instruction sets that the loops are compiled for, narrowest first.
std::span<const Isa> compiled_isas();
/// The widest instruction set that this processor has and the loops are compiled for.
Isa widest_isa();
/// The loops for an instruction set up to widest_isa().
const Loops& loops_for(Isa isa);
/// Keeps oneDNN from using wider instructions, where it can be kept. It has an effect only before oneDNN's first
/// primitive.
void limit_onednn(Isa isa);
/// Whether the processor multiplies bfloat16 itself.
bool has_bfloat16_instructions();
/// Whether oneDNN writes code with instructions that multiply bfloat16, and with those that multiply tiles of it. To be
/// asked after limit_onednn().
bool onednn_has_bfloat16();
bool onednn_has_bfloat16_tiles();

}  // namespace lockstep::kernels::cpu
