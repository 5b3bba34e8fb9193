// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/conv_plans.h"

#include <cudnn.h>

#include <map>
#include <mutex>
#include <string>

#include "runtime/kernels/cuda/conv_choice.h"
#include "runtime/tensor/cuda/check.h"
#include "runtime/tensor/cuda/stream.h"
#include "runtime/tensor/error.h"

namespace lockstep::kernels::cuda {

namespace {

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw EnvironmentError(std::string(what) + ": " + cudnnGetErrorString(status),
                         "CUDNN_LOGLEVEL_DBG=2 makes cuDNN say more.");
}

}  // namespace

/// One handle for all threads and streams, since making one costs milliseconds and cannot happen while a CUDA graph is
/// captured. It is told the stream at each call, so a call has it to itself.
struct ConvPlans::State {
  explicit State(Device device) : choice(device) {}
  ~State() {
    plans.clear();
    if (handle != nullptr) cudnnDestroy(handle);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Null where cuDNN has no engine, which is remembered too. Plans are kept for good: kernels that are still to run,
  /// or that a CUDA graph refers to, are unloaded with theirs.
  ConvGraph* get(const ConvProblem& problem, const ConvData& data) {
    if (const auto found = plans.find(problem); found != plans.end()) return found->second.get();
    return plans.emplace(problem, choice.choose(handle, problem, data)).first->second.get();
  }

  ConvChoice choice;
  std::mutex mutex;
  cudnnHandle_t handle = nullptr;  // made when the first convolution comes: a model may have none
  std::map<ConvProblem, std::unique_ptr<ConvGraph>> plans;
};

ConvPlans::ConvPlans(Device device) : device_(device), state_(std::make_unique<State>(device)) {}
ConvPlans::~ConvPlans() = default;

bool ConvPlans::run(const ConvProblem& problem, const ConvData& data) {
  const gpu::DeviceGuard guard(device_);
  const std::lock_guard lock(state_->mutex);
  if (state_->handle == nullptr) check(cudnnCreate(&state_->handle), "cudnnCreate");
  check(cudnnSetStream(state_->handle, gpu::current(device_)), "cudnnSetStream");
  const ConvGraph* plan = state_->get(problem, data);
  if (plan == nullptr) return false;
  plan->run(state_->handle, data, device_);
  return true;
}

}  // namespace lockstep::kernels::cuda
