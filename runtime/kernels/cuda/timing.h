// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <limits>

#include "runtime/tensor/cuda/check.h"
#include "runtime/tensor/cuda/stream.h"
#include "runtime/tensor/gpu_waits.h"

namespace lockstep::kernels::cuda {

/// Measures work on the calling thread's current stream of a device, and waits for it as everything does
/// (wait_until()): a failure of the device ends the wait. Not while the stream is captured.
class Timer {
 public:
  explicit Timer(Device device) : device_(device), stream_(gpu::current(device)) {
    gpu::check(cudaEventCreate(&begin_), "cudaEventCreate");
    gpu::check(cudaEventCreate(&end_), "cudaEventCreate");
  }
  ~Timer() {
    gpu::settle_thread(device_);
    if (begin_ != nullptr) cudaEventDestroy(begin_);
    if (end_ != nullptr) cudaEventDestroy(end_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  /// Milliseconds of one call of `run`, which appends to the stream: the best of a few rounds of about a millisecond,
  /// since whatever disturbs one only makes it longer.
  template <class Run>
  float milliseconds_of(Run run) const {
    measure(1, run);  // loads the kernels
    const int runs = std::clamp(static_cast<int>(1.0f / std::max(measure(1, run), 1e-3f)), 1, 50);
    float best = std::numeric_limits<float>::max();
    for (int round = 0; round < 3; ++round) best = std::min(best, measure(runs, run));
    return best;
  }

 private:
  /// Milliseconds that the device needs for one of `runs` calls of `run`.
  template <class Run>
  float measure(int runs, Run run) const {
    gpu::check(cudaEventRecord(begin_, stream_), "cudaEventRecord");
    for (int i = 0; i < runs; ++i) run();
    gpu::check(cudaEventRecord(end_, stream_), "cudaEventRecord");
    gpu::wait_until(device_, [this] { return gpu::ended(cudaEventQuery(end_), "cudaEventQuery"); });
    float milliseconds = 0;
    gpu::check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return milliseconds / static_cast<float>(runs);
  }

  Device device_;
  cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

inline bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  gpu::check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace lockstep::kernels::cuda
