// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/backend.h"

#include "runtime/kernels/cpu/cpu_backend.h"
#include "runtime/tensor/error.h"

namespace lockstep::kernels {

namespace {

thread_local Backend* scoped = nullptr;

}  // namespace

Backend& backend(Device device) {
  if (device.type != DeviceType::kCpu) {
    throw EnvironmentError("no kernels for " + str(device) + ": this build has no CUDA backend", "Use --device cpu.");
  }
  return scoped != nullptr ? *scoped : cpu_backend();
}

ScopedBackend::ScopedBackend(Backend& replacement) : previous_(scoped) { scoped = &replacement; }
ScopedBackend::~ScopedBackend() { scoped = previous_; }

}  // namespace lockstep::kernels
