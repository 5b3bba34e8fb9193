// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/backend.h"

#include "runtime/kernels/cpu/cpu_backend.h"
#include "runtime/kernels/cuda_backend.h"

namespace lockstep::kernels {

namespace {

thread_local Backend* scoped = nullptr;

}  // namespace

Backend& backend(Device device) {
  if (device.type != DeviceType::kCpu) return cuda_backend(device);
  return scoped != nullptr ? *scoped : cpu_backend();
}

ScopedBackend::ScopedBackend(Backend& replacement) : previous_(scoped) { scoped = &replacement; }
ScopedBackend::~ScopedBackend() { scoped = previous_; }

}  // namespace lockstep::kernels
