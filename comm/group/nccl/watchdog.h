// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/tensor/device.h"

namespace lockstep::comm {

class WatchedChannel;

/// What the channels of a World share: the GPU, a thread that watches over all of them, and the failure that ended the
/// group. Lives as long as its last channel.
class NcclWatchdog {
 public:
  NcclWatchdog(Device device, std::chrono::milliseconds timeout);
  ~NcclWatchdog();
  NcclWatchdog(const NcclWatchdog&) = delete;
  NcclWatchdog& operator=(const NcclWatchdog&) = delete;

  Device device() const { return device_; }
  std::chrono::milliseconds timeout() const { return timeout_; }

  /// Watches over the channel until remove() has returned.
  void add(WatchedChannel& channel);
  void remove(WatchedChannel& channel);

  /// Ends the group: aborts every channel. Waits for the device throw this exception from now on; the first one stays.
  void fail(std::exception_ptr failure);
  /// Throws what fail() was given.
  void require_working();

 private:
  void serve();
  void fail_locked(std::exception_ptr failure);

  Device device_;
  std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<WatchedChannel*> channels_;
  std::exception_ptr failure_;
  std::atomic<bool> failed_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace lockstep::comm
