// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/cudnn_plans.h"

#include <spdlog/spdlog.h>

#include <string>

#include "runtime/base/error.h"
#include "runtime/tensor/cuda/check.h"
#include "runtime/tensor/cuda/stream.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::kernels::cuda {

namespace {

void check_cudnn(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw EnvironmentError(std::string(what) + ": " + cudnnGetErrorString(status),
                         "CUDNN_LOGLEVEL_DBG=2 makes cuDNN say more.");
}

}  // namespace

Cudnn::Cudnn(Device device)
    : device_(device), compute_capability_(gpu::describe(device).compute_capability), choice_(device) {}

Cudnn::~Cudnn() {
  if (handle_ == nullptr) return;
  gpu::settle_thread(device_);
  cudnnDestroy(handle_);
}

cudnnHandle_t Cudnn::on_current_stream() {
  if (handle_ == nullptr) check_cudnn(cudnnCreate(&handle_), "cudnnCreate");
  check_cudnn(cudnnSetStream(handle_, gpu::current(device_)), "cudnnSetStream");
  return handle_;
}

std::unique_ptr<CudnnPlan> Cudnn::choose(cudnnHandle_t handle, const CudnnProblem& problem,
                                         const CudnnAddresses& addresses) const {
  std::unique_ptr<CudnnPlan> plan = choice_.choose(handle, problem, addresses);
  if (!plan) spdlog::info("cuDNN has no engine for {}", problem.key);
  return plan;
}

}  // namespace lockstep::kernels::cuda
