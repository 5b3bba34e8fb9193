// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "comm/group/nccl/nccl_comm.h"
#include "comm/group/nccl/watchdog.h"
#include "runtime/tensor/stream.h"

namespace lockstep::comm {

/// An NCCL communicator with a watch over what it has on its way, for one thread at a time.
class WatchedChannel {
 public:
  /// A collective of the ranks of `host`, which finds the ranks that are missing from this channel.
  WatchedChannel(std::shared_ptr<NcclWatchdog> group, std::shared_ptr<Communicator> host, std::string name);
  /// The same of an NCCL communicator that has been made already.
  WatchedChannel(std::shared_ptr<NcclWatchdog> group, std::shared_ptr<Communicator> host, std::string name,
                 ncclComm_t native);
  ~WatchedChannel();
  WatchedChannel(const WatchedChannel&) = delete;
  WatchedChannel& operator=(const WatchedChannel&) = delete;

  /// A call of NCCL that enqueues nothing.
  void prepare(const Operation& operation, const NcclComm::Call& call);
  /// A call of NCCL that appends to the stream.
  using Enqueue = std::function<ncclResult_t(ncclComm_t, cudaStream_t)>;
  void enqueue(const Operation& operation, const Stream& stream, const Enqueue& call);
  /// LaunchWatch::watch.
  void watch(const Stream& stream, const std::function<void()>& launch);

  std::shared_ptr<WatchedChannel> duplicate(const std::string& name);
  /// Communicator::split.
  std::shared_ptr<WatchedChannel> split(int color, int key, const std::string& name);
  const std::shared_ptr<Communicator>& host() const { return host_; }

  // For the group's thread.

  /// Throws PeerError when NCCL has failed, or what is on its way waits for a rank that does not come.
  void inspect();
  void abort() noexcept { comm_.abort(); }

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
  cudaEvent_t record(cudaStream_t stream);
  void retire_finished();
  /// Waits until nothing is on its way.
  void drain();

  std::shared_ptr<NcclWatchdog> group_;
  std::shared_ptr<Communicator> host_;
  std::string name_;
  NcclComm comm_;
  std::int64_t number_ = 0;  // of the operations enqueued
  Clock::time_point inspected_;
  std::mutex mutex_;  // guards what follows
  std::deque<Watched> watched_;
  std::vector<cudaEvent_t> events_;  // not in use
};

}  // namespace lockstep::comm
