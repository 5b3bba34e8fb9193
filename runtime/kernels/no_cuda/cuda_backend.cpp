// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda_backend.h"

#include "runtime/base/error.h"
#include "runtime/kernels/backend.h"

namespace lockstep::kernels {

const Backend& cuda_backend(Device device) {
  throw EnvironmentError("no kernels for " + str(device) + ": this build has no CUDA", "Use --device cpu.");
}

void set_tf32(bool) {}

}  // namespace lockstep::kernels
