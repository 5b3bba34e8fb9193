// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/device.h"

namespace lockstep::kernels {

struct Backend;

/// What an NVIDIA GPU computes; implemented by cuda/, or by no_cuda/ in a build without CUDA, where it throws
/// EnvironmentError. Everything is appended to the calling thread's current stream of the device, and nothing waits.
const Backend& cuda_backend(Device device);

/// Whether float32 matrix products and convolutions may round their operands to TF32 on the way into the tensor cores.
/// Not unless somebody says so here, for the whole process, or in the environment: NVIDIA_TF32_OVERRIDE=1, and 0
/// forbids it whatever is said here.
void set_tf32(bool allow);

}  // namespace lockstep::kernels
