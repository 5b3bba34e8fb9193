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

std::string_view backend_name(Device device) { return backend(device).name; }

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

const Elementwise& Elementwise::on(Device device) { return backend(device); }
const Pointwise& Pointwise::on(Device device) { return backend(device); }
const Reductions& Reductions::on(Device device) { return backend(device); }
const MatrixProducts& MatrixProducts::on(Device device) { return backend(device); }
const Convolution& Convolution::on(Device device) { return backend(device); }
const Pooling& Pooling::on(Device device) { return backend(device); }
const Softmax& Softmax::on(Device device) { return backend(device); }
const Losses& Losses::on(Device device) { return backend(device); }
const Attention& Attention::on(Device device) { return backend(device); }
const BatchNormalization& BatchNormalization::on(Device device) { return backend(device); }
const Normalization& Normalization::on(Device device) { return backend(device); }
const Embedding& Embedding::on(Device device) { return backend(device); }
const Upsampling& Upsampling::on(Device device) { return backend(device); }
const ArenaSteps& ArenaSteps::on(Device device) { return backend(device); }
const Decisions& Decisions::on(Device device) { return backend(device); }
const Movement& Movement::on(Device device) { return backend(device); }
const DimReductions& DimReductions::on(Device device) { return backend(device); }
const Scans& Scans::on(Device device) { return backend(device); }
const Indexing& Indexing::on(Device device) { return backend(device); }

ScopedBackend::ScopedBackend(const Backend& replacement) : previous_(scoped) { scoped = &replacement; }
ScopedBackend::~ScopedBackend() { scoped = previous_; }

}  // namespace lockstep::kernels
