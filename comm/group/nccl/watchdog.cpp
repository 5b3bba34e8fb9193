// SPDX-License-Identifier: Apache-2.0
#include "comm/group/nccl/watchdog.h"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include "comm/group/nccl/watched_channel.h"
#include "runtime/tensor/cuda/check.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::comm {

namespace {

constexpr auto kPoll = std::chrono::milliseconds(10);

}  // namespace

NcclWatchdog::NcclWatchdog(Device device, std::chrono::milliseconds timeout)
    : device_(device), timeout_(timeout), thread_([this] { serve(); }) {
  pthread_setname_np(thread_.native_handle(), "nccl watchdog");
}

NcclWatchdog::~NcclWatchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (failed_) gpu::set_failure(device_, nullptr);
}

void NcclWatchdog::add(WatchedChannel& channel) {
  const std::lock_guard lock(mutex_);
  channels_.push_back(&channel);
}

void NcclWatchdog::remove(WatchedChannel& channel) {
  const std::lock_guard lock(mutex_);
  std::erase(channels_, &channel);
}

void NcclWatchdog::fail(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  fail_locked(std::move(failure));
}

void NcclWatchdog::fail_locked(std::exception_ptr failure) {
  if (failed_) return;
  failure_ = failure;
  failed_ = true;
  // First: an abort ends the waits that have to learn of it.
  gpu::set_failure(device_, std::move(failure));
  for (WatchedChannel* channel : channels_) channel->abort();
}

void NcclWatchdog::require_working() {
  if (!failed_) return;
  const std::lock_guard lock(mutex_);
  std::rethrow_exception(failure_);
}

void NcclWatchdog::serve() {
  try {
    gpu::check(cudaSetDevice(device_.index), "cudaSetDevice");
    // Asking for an event must not end a capture that another thread has begun.
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    gpu::check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
  } catch (const std::exception& error) {
    spdlog::error("collectives on {} are not watched: {}", str(device_), error.what());
    return;
  }
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait_for(lock, kPoll);
    if (failed_) continue;
    try {
      for (WatchedChannel* channel : channels_) channel->inspect();
    } catch (...) {
      fail_locked(std::current_exception());
    }
  }
}

}  // namespace lockstep::comm
