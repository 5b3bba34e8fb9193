// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/versions.h"

#include <dnnl.hpp>

#include "runtime/kernels/cpu/isa.h"
#include "runtime/kernels/cpu/onednn/api.h"

namespace lockstep::kernels {

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return std::to_string(version->major) + "." + std::to_string(version->minor) + "." + std::to_string(version->patch);
}

std::string onednn_isa() {
  cpu::isa();  // sets oneDNN's limit
  return cpu::onednn::name_of(dnnl::get_effective_cpu_isa());
}

}  // namespace lockstep::kernels
