// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/versions.h"

#include <dnnl.hpp>

namespace lockstep::kernels {

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return std::to_string(version->major) + "." + std::to_string(version->minor) + "." + std::to_string(version->patch);
}

}  // namespace lockstep::kernels
