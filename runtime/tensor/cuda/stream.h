// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/tensor/gpu.h"

namespace lockstep::gpu {

/// What CUDA and its libraries are given. Throws UsageError for a stream of the CPU.
cudaStream_t native(const Stream& stream);
/// That of current_stream(device).
cudaStream_t current(Device device);

}  // namespace lockstep::gpu
