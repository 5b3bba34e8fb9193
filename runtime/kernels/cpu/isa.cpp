// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/isa.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "runtime/base/error.h"
#include "runtime/kernels/cpu/processor.h"

namespace lockstep::kernels::cpu {

namespace {

constexpr const char* kVariable = "LOCKSTEP_CPU_ISA";

Isa named(const std::string& name) {
  std::string names;
  for (const Isa isa : compiled_isas()) {
    if (name == name_of(isa)) return isa;
    names += (names.empty() ? "" : " or ") + std::string(name_of(isa));
  }
  throw UsageError(std::string(kVariable) + " is \"" + name + "\", expected " + names);
}

/// oneDNN reads its limit when it makes its first primitive, so this comes before every use of it.
Isa choose() {
  const char* name = std::getenv(kVariable);
  if (name == nullptr || *name == '\0') return widest_isa();
  const Isa limit = named(name);
  limit_onednn(limit);
  return std::min(limit, widest_isa());
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
    case Isa::kNeon:
      return "neon";
    case Isa::kNeonBf16:
      return "neon_bf16";
  }
  return "unknown";
}

bool has_native_bfloat16() {
  static const bool has = isa() == Isa::kAvx512 && onednn_has_bfloat16();
  return has;
}

bool has_bfloat16_tiles() {
  static const bool has = isa() == Isa::kAvx512 && onednn_has_bfloat16_tiles();
  return has;
}

const Loops& loops() { return loops_for(isa()); }

}  // namespace lockstep::kernels::cpu
