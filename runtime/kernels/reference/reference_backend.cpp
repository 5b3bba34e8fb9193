// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/reference/reference_backend.h"

namespace lockstep::kernels {

std::string_view ReferenceBackend::name() const { return "reference"; }

Backend& reference_backend() {
  static ReferenceBackend backend;
  return backend;
}

}  // namespace lockstep::kernels
