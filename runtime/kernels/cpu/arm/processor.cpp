// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/processor.h"

#include <asm/hwcap.h>
#include <sys/auxv.h>

#include <array>

namespace lockstep::kernels::cpu {

namespace {

constexpr std::array kIsas{Isa::kBaseline, Isa::kNeon, Isa::kNeonBf16};

bool has_float16_instructions() { return (getauxval(AT_HWCAP) & HWCAP_ASIMDHP) != 0; }

}  // namespace

std::span<const Isa> compiled_isas() { return kIsas; }

/// Every processor of this family has NEON with conversions of float16.
Isa widest_isa() { return has_bfloat16_instructions() ? Isa::kNeonBf16 : Isa::kNeon; }

const Loops& loops_for(Isa isa) {
  if (isa == Isa::kNeonBf16) return neon_bf16::all_loops();
  return isa == Isa::kNeon ? neon::all_loops() : baseline::all_loops();
}

/// oneDNN knows no limit below the processor's instructions here.
void limit_onednn(Isa) {}

/// oneDNN writes code for SVE alone. Its "gemm:jit", too, calls the plain product here.
bool is_plain(std::string_view implementation) {
  return implementation.starts_with("gemm") || implementation.starts_with("ref");
}

std::vector<std::string_view> half_instructions() {
  std::vector<std::string_view> names{"FCVT"};
  if (has_float16_instructions()) names.push_back("FP16");
  if (has_bfloat16_instructions()) names.push_back("BF16");
  return names;
}

bool has_bfloat16_instructions() { return (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0; }
bool onednn_has_bfloat16() { return false; }
bool onednn_has_bfloat16_tiles() { return false; }

}  // namespace lockstep::kernels::cpu
