// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/backend.h"

#include <map>
#include <mutex>

#include "runtime/kernels/cuda/conv_plans.h"
#include "runtime/kernels/cuda/matmul_plans.h"
#include "runtime/kernels/cuda/segment_tables.h"
#include "runtime/tensor/cuda/check.h"

namespace lockstep::kernels {

CudaBackend::CudaBackend(Device device)
    : device_(device),
      segments_(std::make_unique<cuda::SegmentTables>(device)),
      matmuls_(std::make_unique<cuda::MatmulPlans>(device)),
      convolutions_(std::make_unique<cuda::ConvPlans>(device)) {}

CudaBackend::~CudaBackend() = default;

std::string_view CudaBackend::name() const { return "cuda"; }

Backend& cuda_backend(Device device) {
  gpu::require(device);
  static std::mutex mutex;
  // Never destroyed: the driver may be gone before static objects are.
  static std::map<int, CudaBackend*>& backends = *new std::map<int, CudaBackend*>;
  const std::lock_guard lock(mutex);
  CudaBackend*& backend = backends[device.index];
  if (backend == nullptr) backend = new CudaBackend(device);
  return *backend;
}

}  // namespace lockstep::kernels
