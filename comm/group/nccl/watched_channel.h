// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/group/device_watch/device_watchdog.h"
#include "comm/group/device_watch/watched_work.h"
#include "comm/group/nccl/nccl_comm.h"
#include "runtime/tensor/stream.h"

namespace lockstep::comm {

/// An NCCL communicator with a watch over what it has on its way, for one thread at a time.
class WatchedChannel final : public WatchedWork {
 public:
  /// The parts that the channels of a group share.
  struct Group {
    std::shared_ptr<DeviceWatchdog> watchdog;
    Device device;
    std::chrono::milliseconds timeout;
  };

  /// A collective of the ranks of `host`, which finds the ranks that are missing from this channel.
  WatchedChannel(Group group, std::shared_ptr<Communicator> host, std::string name);
  /// Takes an NCCL communicator that has been made already.
  WatchedChannel(Group group, std::shared_ptr<Communicator> host, std::string name, ncclComm_t native);
  /// Waits for what is on its way and for the other ranks; where an error is on its way out of the run, ends all
  /// groups of the process instead.
  ~WatchedChannel() override;
  WatchedChannel(const WatchedChannel&) = delete;
  WatchedChannel& operator=(const WatchedChannel&) = delete;

  /// A call of NCCL that appends to the stream.
  using Enqueue = std::function<ncclResult_t(ncclComm_t, cudaStream_t)>;
  void enqueue(const Operation& operation, const Stream& stream, const Enqueue& append);
  /// LaunchWatch::watch.
  void watch(const Stream& stream, std::uint64_t step, const std::function<void()>& launch);

  std::shared_ptr<WatchedChannel> duplicate(const std::string& name);
  /// Communicator::split.
  std::shared_ptr<WatchedChannel> split(int color, int key, const std::string& name);
  const std::shared_ptr<Communicator>& host() const { return host_; }

  // For the watchdog's threads.

  Device device() const override { return group_.device; }
  void look() override;
  void inspect() override;
  std::function<void()> abort() override { return comm_.abort(); }

 private:
  using Clock = std::chrono::steady_clock;
  /// Work on its way, between two points of its stream.
  struct Watched {
    Operation operation;
    std::int64_t number = 0;
    cudaEvent_t before = nullptr;
    cudaEvent_t after = nullptr;
    Clock::time_point began;  ///< when the watch first saw it wait, behind nothing else
    bool running = false;
  };

  /// Appends what `launch` does to the stream and watches it, unless the stream is being captured.
  void launch_watched(const Operation& operation, cudaStream_t stream, const std::function<void()>& launch);
  void call(const Operation& operation, const NcclComm::Call& function);
  cudaEvent_t record(cudaStream_t stream);
  /// The oldest work on its way, about which the device is asked from now on; none where there is none.
  std::optional<Watched> begin_look();
  void note(const Watched& oldest, bool began, bool ended);
  /// Waits until nothing is on its way.
  void drain();

  /// Ends all groups of the process, with the error that is being handled, and throws the one that ended them.
  [[noreturn]] void fail();
  void leave() noexcept;

  Group group_;
  std::shared_ptr<Communicator> host_;
  std::string name_;
  NcclComm comm_;
  std::int64_t number_ = 0;  // of the operations enqueued
  Clock::time_point inspected_;
  std::mutex mutex_;  // guards what follows; nobody asks the device meanwhile
  std::optional<Clock::time_point> looking_since_;
  std::deque<Watched> watched_;
  std::vector<cudaEvent_t> events_;  // not in use
};

}  // namespace lockstep::comm
