// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/processor.h"

#include <cpuid.h>

#include <algorithm>
#include <array>
#include <dnnl.hpp>

namespace lockstep::kernels::cpu {

namespace {

constexpr std::array kIsas{Isa::kBaseline, Isa::kAvx2, Isa::kAvx512};

/// Asked by hand: Clang 14's __builtin_cpu_supports does not know F16C.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

/// Whether oneDNN uses these instructions, which the processor has. The number of an instruction set has the bits of
/// those that it includes; 0 says that oneDNN was built without limits.
bool onednn_uses(dnnl::cpu_isa wanted) {
  const auto bits = static_cast<unsigned>(wanted);
  const auto used = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  return used == 0 || (used & bits) == bits;
}

bool has_instructions(std::string_view name) {
  const std::vector<std::string_view> names = half_instructions();
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

std::span<const Isa> compiled_isas() { return kIsas; }

Isa widest_isa() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx2 && avx512 ? Isa::kAvx512 : avx2 ? Isa::kAvx2 : Isa::kBaseline;
}

const Loops& loops_for(Isa isa) {
  if (isa == Isa::kAvx512) return avx512::all_loops();
  return isa == Isa::kAvx2 ? avx2::all_loops() : baseline::all_loops();
}

void limit_onednn(Isa isa) {
  if (isa == Isa::kBaseline) dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
  if (isa == Isa::kAvx2) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
}

/// oneDNN writes code for all of these processors, also where it names an implementation "gemm:ref".
bool is_plain(std::string_view) { return false; }

std::vector<std::string_view> half_instructions() {
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f");
  unsigned features[4] = {}, more[4] = {};  // eax, ebx, ecx, edx
  __get_cpuid_count(7, 0, &features[0], &features[1], &features[2], &features[3]);
  __get_cpuid_count(7, 1, &more[0], &more[1], &more[2], &more[3]);
  const auto bit = [](unsigned word, int number) { return (word >> number & 1) != 0; };
  const bool amx = bit(features[3], 24);  // tiles
  std::vector<std::string_view> names;
  if (has_f16c()) names.push_back("F16C");
  if (has_bfloat16_instructions()) names.push_back("AVX512_BF16");
  if (avx512 && bit(features[3], 23)) names.push_back("AVX512_FP16");
  if (amx && bit(features[3], 22)) names.push_back("AMX_BF16");
  if (amx && bit(more[0], 21)) names.push_back("AMX_FP16");
  return names;
}

bool has_bfloat16_instructions() { return __builtin_cpu_supports("avx512bf16"); }
bool onednn_has_bfloat16() { return has_bfloat16_instructions() && onednn_uses(dnnl::cpu_isa::avx512_core_bf16); }
bool onednn_has_bfloat16_tiles() { return has_instructions("AMX_BF16") && onednn_uses(dnnl::cpu_isa::avx512_core_amx); }

}  // namespace lockstep::kernels::cpu
