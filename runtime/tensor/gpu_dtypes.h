// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "runtime/tensor/dtype.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::gpu {

/// Why the GPU has no such dtype, naming device, model and compute capability; empty where it has it. bfloat16 begins
/// at 8.0.
std::string why_no_dtype(DType dtype, Device device, const Description& gpu);

/// Throws EnvironmentError with that line. Asks the device once; nothing on a CPU.
void require_dtype(DType dtype, Device device);

}  // namespace lockstep::gpu
