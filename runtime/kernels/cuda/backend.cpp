// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/backend.h"

#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda_backend.h"
#include "runtime/tensor/cuda/check.h"

namespace lockstep::kernels {

const Backend& cuda_backend(Device device) {
  gpu::require(device);
  static const Backend backend{
      cuda::kElementwise,   cuda::kPointwise,     cuda::kReductions, cuda::kMatrixProducts, cuda::kConvolution,
      cuda::kPooling,       cuda::kSoftmax,       cuda::kLosses,     cuda::kAttention,      cuda::kBatchNormalization,
      cuda::kNormalization, cuda::kEmbedding,     cuda::kUpsampling, cuda::kArenaSteps,     cuda::kDecisions,
      cuda::kMovement,      cuda::kDimReductions, cuda::kScans,      cuda::kIndexing,       "cuda"};
  return backend;
}

}  // namespace lockstep::kernels
