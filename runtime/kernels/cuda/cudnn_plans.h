// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cudnn.h>

#include <map>
#include <memory>
#include <mutex>

#include "runtime/kernels/cuda/cudnn_plan.h"
#include "runtime/kernels/cuda/engine_choice.h"
#include "runtime/tensor/cuda/check.h"

namespace lockstep::kernels::cuda {

/// cuDNN on one device. One handle for all threads and streams, since making one costs milliseconds and cannot happen
/// while a CUDA graph is captured. It is told the stream at each call, so a call has it to itself.
class Cudnn {
 public:
  /// Throws UsageError for what plan_settings() refuses.
  explicit Cudnn(Device device);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  Device device() const { return device_; }
  int compute_capability() const { return compute_capability_; }

  /// Calls f(handle), on the calling thread's current stream of the device.
  template <class F>
  auto use(F&& f) {
    const gpu::DeviceGuard guard(device_);
    const std::lock_guard lock(mutex_);
    return f(on_current_stream());
  }
  /// Null, and a line in the log, where cuDNN has no engine.
  std::unique_ptr<CudnnPlan> choose(cudnnHandle_t handle, const CudnnProblem& problem,
                                    const CudnnAddresses& addresses) const;

 private:
  cudnnHandle_t on_current_stream();

  Device device_;
  int compute_capability_;
  EngineChoice choice_;
  std::mutex mutex_;
  cudnnHandle_t handle_ = nullptr;  // made when it is needed: a model may have nothing for cuDNN
};

/// The plans for those problems of one kind that were met. `Problem` is ordered; graph_of(problem) is a CudnnProblem,
/// addresses_of(data) its CudnnAddresses. Thread-safe.
template <class Problem, class Data>
class CudnnPlans {
 public:
  explicit CudnnPlans(Cudnn& cudnn) : cudnn_(cudnn) {}

  /// Appends the problem to the calling thread's current stream of the device and returns true, or returns false where
  /// cuDNN has no engine for it, which is remembered too. Plans are kept for good: kernels that are still to run, or
  /// that a CUDA graph refers to, are unloaded with theirs.
  bool run(const Problem& problem, const Data& data) {
    return cudnn_.use([&](cudnnHandle_t handle) {
      const CudnnAddresses addresses = addresses_of(data);
      auto found = plans_.find(problem);
      if (found == plans_.end()) {
        found = plans_.emplace(problem, cudnn_.choose(handle, graph_of(problem), addresses)).first;
      }
      if (!found->second) return false;
      found->second->run(handle, addresses, cudnn_.device());
      return true;
    });
  }

 private:
  Cudnn& cudnn_;
  std::map<Problem, std::unique_ptr<CudnnPlan>> plans_;  ///< used with the handle alone
};

}  // namespace lockstep::kernels::cuda
