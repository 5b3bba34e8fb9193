// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "runtime/base/error.h"
#include "runtime/tensor/device.h"

namespace lockstep::gpu {

/// Throws MemoryError or EnvironmentError that names the call unless it succeeded. `what`: "cudaMemcpyAsync".
void check(cudaError_t status, const char* what);

/// Whether what a query asked for has ended. `what` is the query, as for check().
bool ended(cudaError_t status, const char* what);

/// Throws EnvironmentError that names the device unless it is there.
void require(Device device);

/// Selects the device of use_device(), where that was called, for a thread that has selected none. Call this before a
/// CUDA call that would otherwise create a context on the machine's first device.
void settle_thread() noexcept;
/// settle_thread() where a device is known, which the thread gets where use_device() was not called. Called before
/// something of the device is used or destroyed: destructors run on any thread.
void settle_thread(Device device) noexcept;

/// While it lives, the calling thread's CUDA calls go to this device. A thread that had selected no device keeps this
/// one afterwards: selecting CUDA's default again would create a context on the machine's first device.
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
