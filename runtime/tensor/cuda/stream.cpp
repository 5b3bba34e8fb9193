// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/cuda/stream.h"

#include <chrono>
#include <memory>

#include "runtime/tensor/cuda/capture.h"
#include "runtime/tensor/cuda/check.h"
#include "runtime/tensor/cuda/staging.h"
#include "runtime/tensor/gpu_waits.h"

namespace lockstep::gpu {

namespace {

class CudaEvent final : public EventImpl {
 public:
  explicit CudaEvent(Device device, cudaStream_t stream) : device_(device) {
    const DeviceGuard guard(device_);
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
    check(cudaEventRecord(event_, stream), "cudaEventRecord");
  }
  ~CudaEvent() override {
    settle_thread(device_);
    cudaEventDestroy(event_);
  }

  void synchronize() override {
    if (!done()) wait_until(device_, [this] { return reached(); });
  }
  bool done() override {
    if (!reached()) return false;
    rethrow_failure(device_);
    return true;
  }
  cudaEvent_t native() const { return event_; }

 private:
  bool reached() const {
    settle_thread(device_);
    return ended(cudaEventQuery(event_), "cudaEventQuery");
  }

  Device device_;
  cudaEvent_t event_ = nullptr;
};

class CudaStream final : public StreamImpl, public std::enable_shared_from_this<CudaStream> {
 public:
  CudaStream(Device device, StreamPriority priority) : device_(device) {
    const DeviceGuard guard(device_);
    int least = 0;
    int greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking,
                                       priority == StreamPriority::kLeast ? least : greatest),
          "cudaStreamCreateWithPriority");
  }
  ~CudaStream() override {
    settle_thread(device_);
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }

  Device device() const override { return device_; }

  /// Runs the work now: what it does is launch more on this stream.
  void enqueue(std::function<void()> work) override {
    const ScopedStream scope{Stream(shared_from_this())};
    work();
  }

  void wait(const Event& event) override {
    if (!event.impl()) return;
    const auto* other = dynamic_cast<const CudaEvent*>(event.impl().get());
    if (other == nullptr) {
      event.synchronize();
      return;
    }
    settle_thread(device_);
    check(cudaStreamWaitEvent(stream_, other->native(), cudaEventWaitDefault), "cudaStreamWaitEvent");
  }

  Event record() override { return Event(std::make_shared<CudaEvent>(device_, stream_)); }

  void synchronize() override {
    settle_thread(device_);
    wait_until(device_, [this] { return ended(cudaStreamQuery(stream_), "cudaStreamQuery"); });
  }

  cudaStream_t native() const { return stream_; }

 private:
  Device device_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace

struct Moment::Impl {
  explicit Impl(const Stream& stream) : device(stream.device()) {
    const DeviceGuard guard(device);
    check(cudaEventCreate(&event), "cudaEventCreate");
    check(cudaEventRecord(event, gpu::native(stream)), "cudaEventRecord");
  }
  ~Impl() {
    settle_thread(device);
    cudaEventDestroy(event);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Device device;
  cudaEvent_t event = nullptr;
};

Moment::Moment(const Stream& stream) : impl_(std::make_shared<Impl>(stream)) {}

std::chrono::nanoseconds Moment::since(const Moment& earlier) const {
  settle_thread(impl_->device);
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, earlier.impl_->event, impl_->event), "cudaEventElapsedTime");
  return std::chrono::round<std::chrono::nanoseconds>(std::chrono::duration<double, std::milli>(milliseconds));
}

cudaStream_t native(const Stream& stream) {
  const auto* cuda = dynamic_cast<const CudaStream*>(stream.impl().get());
  if (cuda == nullptr) throw UsageError("a stream of " + str(stream.device()) + " was used for work on a GPU");
  return cuda->native();
}

cudaStream_t current(Device device) { return native(current_stream(device)); }

Stream make_stream(Device device, const std::string&, StreamPriority priority) {
  return Stream(std::make_shared<CudaStream>(device, priority));
}

void copy(void* to, const void* from, std::size_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  settle_thread(stream.device());
  require_capturable(to);
  require_capturable(from);
  if (is_pageable(from)) return Staging::of(stream.device()).copy(to, from, bytes, native(stream));
  const bool lands = is_pageable(to);
  // Before the copy, which blocks in the driver behind whatever hangs. It is not appended where this throws: the memory
  // may end then.
  if (lands) stream.synchronize();
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, native(stream)), "cudaMemcpyAsync");
  if (lands) check(cudaStreamSynchronize(native(stream)), "cudaStreamSynchronize");
}

void zero(void* to, std::size_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  settle_thread(stream.device());
  check(cudaMemsetAsync(to, 0, bytes, native(stream)), "cudaMemsetAsync");
}

}  // namespace lockstep::gpu
