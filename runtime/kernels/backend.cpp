// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/backend.h"

#include "runtime/kernels/cpu/backend.h"
#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cuda_backend.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels {

namespace {

thread_local const Backend* scoped = nullptr;

}  // namespace

const Backend& backend(Device device) {
  if (device.type != DeviceType::kCpu) return cuda_backend(device);
  return scoped != nullptr ? *scoped : cpu_backend();
}

const Backend& reference_backend() {
  static const Backend backend{reference::kElementwise,   reference::kPointwise,
                               reference::kReductions,    reference::kMatrixProducts,
                               reference::kConvolution,   reference::kPooling,
                               reference::kSoftmax,       reference::kLosses,
                               reference::kAttention,     reference::kBatchNormalization,
                               reference::kNormalization, reference::kEmbedding,
                               reference::kUpsampling,    reference::kArenaSteps,
                               cpu::kDecisions,           reference::kMovement,
                               reference::kDimReductions, reference::kScans,
                               reference::kIndexing,      "reference"};
  return backend;
}

ScopedBackend::ScopedBackend(const Backend& replacement) : previous_(scoped) { scoped = &replacement; }
ScopedBackend::~ScopedBackend() { scoped = previous_; }

}  // namespace lockstep::kernels
