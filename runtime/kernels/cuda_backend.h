// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/device.h"

namespace lockstep::kernels {

struct Backend;

/// The backend of an NVIDIA GPU. cuda/ implements it; in a build without CUDA, no_cuda/ does, and throws
/// EnvironmentError. Every operation is appended to the calling thread's current stream of the device; none waits.
const Backend& cuda_backend(Device device);

/// Sets, for the whole process, whether float32 matrix products and convolutions may round their operands to TF32 on
/// the way into the tensor cores. By default they may not. The environment decides before this: NVIDIA_TF32_OVERRIDE=1
/// allows it, 0 forbids it.
void set_tf32(bool allow);

}  // namespace lockstep::kernels
