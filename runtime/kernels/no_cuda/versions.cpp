// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/versions.h"

namespace lockstep::kernels {

std::string cudnn_version() { return {}; }
std::string cublas_version() { return {}; }

}  // namespace lockstep::kernels
