// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/isa.h"

#include <algorithm>
#include <cstdlib>
#include <dnnl.hpp>
#include <string>

#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/tensor/error.h"

namespace lockstep::kernels::cpu {

namespace {

constexpr const char* kVariable = "LOCKSTEP_CPU_ISA";

Isa widest() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx2 && avx512 ? Isa::kAvx512 : avx2 ? Isa::kAvx2 : Isa::kBaseline;
}

Isa named(const std::string& name) {
  for (const Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}) {
    if (name == name_of(isa)) return isa;
  }
  throw UsageError(std::string(kVariable) + " is \"" + name + "\", expected baseline, avx2 or avx512");
}

/// oneDNN reads its limit when it makes its first primitive, so this comes before every use of it.
Isa choose() {
  const char* name = std::getenv(kVariable);
  if (name == nullptr || *name == '\0') return widest();
  const Isa limit = named(name);
  if (limit == Isa::kBaseline) dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
  if (limit == Isa::kAvx2) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
  return std::min(limit, widest());
}

}  // namespace

Isa isa() {
  static const Isa chosen = choose();
  return chosen;
}

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::kBaseline:
      return "baseline";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "unknown";
}

bool has_native_bfloat16() { return isa() == Isa::kAvx512 && __builtin_cpu_supports("avx512bf16"); }

const Loops& loops() {
  switch (isa()) {
    case Isa::kBaseline:
      return baseline::kLoops;
    case Isa::kAvx2:
      return avx2::kLoops;
    case Isa::kAvx512:
      return avx512::kLoops;
  }
  return baseline::kLoops;
}

}  // namespace lockstep::kernels::cpu
