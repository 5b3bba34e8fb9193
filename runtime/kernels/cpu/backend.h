// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/backend.h"

namespace lockstep::kernels {

/// The CPU's fast kernels, whatever a ScopedBackend says.
const Backend& cpu_backend();

}  // namespace lockstep::kernels
