// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::kernels {

struct Backend;

/// The CPU's fast kernels, whatever a ScopedBackend says.
const Backend& cpu_backend();

}  // namespace lockstep::kernels
