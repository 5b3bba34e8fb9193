// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/backend.h"

namespace lockstep::kernels {

/// What an NVIDIA GPU computes; implemented by cuda/, or by no_cuda/ in a build without CUDA, where it throws
/// EnvironmentError. Everything is appended to the calling thread's current stream of the device, and nothing waits.
Backend& cuda_backend(Device device);

}  // namespace lockstep::kernels
