// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/versions.h"

#include <array>
#include <cstdio>
#include <dnnl.hpp>
#include <utility>

#include "runtime/kernels/cpu/isa.h"

namespace lockstep::kernels {

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return std::to_string(version->major) + "." + std::to_string(version->minor) + "." + std::to_string(version->patch);
}

std::string onednn_isa() {
  using dnnl::cpu_isa;
  constexpr std::array kNames{
      std::pair(cpu_isa::sse41, "sse41"),
      std::pair(cpu_isa::avx, "avx"),
      std::pair(cpu_isa::avx2, "avx2"),
      std::pair(cpu_isa::avx2_vnni, "avx2_vnni"),
      std::pair(cpu_isa::avx512_core, "avx512_core"),
      std::pair(cpu_isa::avx512_core_vnni, "avx512_core_vnni"),
      std::pair(cpu_isa::avx512_core_bf16, "avx512_core_bf16"),
      std::pair(cpu_isa::avx512_core_amx, "avx512_core_amx"),
  };
  cpu::isa();  // sets oneDNN's limit
  const cpu_isa used = dnnl::get_effective_cpu_isa();
  for (const auto& [isa, name] : kNames) {
    if (isa == used) return name;
  }
  // One that a later oneDNN knows.
  char number[16];
  std::snprintf(number, sizeof number, "isa 0x%x", static_cast<unsigned>(used));
  return number;
}

}  // namespace lockstep::kernels
