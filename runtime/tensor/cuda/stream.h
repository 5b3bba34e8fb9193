// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/tensor/gpu.h"

namespace lockstep::gpu {

/// The stream's handle, which CUDA and its libraries take. Throws UsageError for a stream of the CPU.
cudaStream_t native(const Stream& stream);
/// The handle of current_stream(device).
cudaStream_t current(Device device);

}  // namespace lockstep::gpu
