// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "runtime/tensor/device.h"
#include "runtime/tensor/error.h"

namespace lockstep::gpu {

/// Throws MemoryError or EnvironmentError that names the call unless it succeeded. `what`: "cudaMemcpyAsync".
void check(cudaError_t status, const char* what);

/// Throws EnvironmentError that names the device unless it is there.
void require(Device device);

/// While it lives, the calling thread's CUDA calls go to this device.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int previous_ = 0;
  bool changed_ = false;
};

}  // namespace lockstep::gpu
