// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/cpu_backend.h"

#include "runtime/kernels/cpu/isa.h"

namespace lockstep::kernels {

std::string_view CpuBackend::name() const { return "cpu"; }

Backend& cpu_backend() {
  static CpuBackend backend;
  static const cpu::Isa before_any_primitive = cpu::isa();
  static_cast<void>(before_any_primitive);
  return backend;
}

}  // namespace lockstep::kernels
