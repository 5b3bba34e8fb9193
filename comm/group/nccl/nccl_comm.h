// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "comm/group/operation.h"

namespace lockstep::comm {

/// One NCCL communicator, nonblocking: none of its calls can hang but an abort, and another thread may abort it at any
/// time. One thread at a time calls run().
class NcclComm {
 public:
  /// A collective of the ranks of `host`, through which they learn rank 0's id. Throws PeerError or EnvironmentError.
  NcclComm(std::shared_ptr<Communicator> host, Device device, std::string channel, std::chrono::milliseconds timeout);
  /// Takes over `native`, which split() gave.
  NcclComm(std::shared_ptr<Communicator> host, Device device, std::string channel, std::chrono::milliseconds timeout,
           ncclComm_t native);
  /// Aborts what leave() has not ended.
  ~NcclComm();
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  using Call = std::function<ncclResult_t(ncclComm_t)>;
  /// Makes an NCCL call and returns once it has enqueued its work. `operation` and its number are for messages and for
  /// the search for ranks that are missing. Throws PeerError.
  void run(const Operation& operation, std::int64_t number, const Call& call);

  /// A communicator of the ranks that give the same color, ordered by key, for the caller to take over; null for a
  /// negative color. Nothing is on its way meanwhile.
  ncclComm_t split(int color, int key, std::int64_t number);

  /// Waits for what is on its way and for the other ranks, and gives the communicator back. Throws as run() does.
  void leave();

  /// Throws PeerError where NCCL has found an error since. `what` was on its way.
  void require_sound(const std::string& what);
  /// Breaks off what is on its way: WatchedWork::abort(). Once it has been called, every later run() throws PeerError.
  std::function<void()> abort();

 private:
  using Clock = std::chrono::steady_clock;

  /// NCCL's handle and what NCCL refers to. An abort, which may outlive the NcclComm, takes the handle away and keeps
  /// the rest.
  struct Handle {
    explicit Handle(std::string name_) : name(std::move(name_)) {}

    const std::string name;  ///< of the channel
    std::mutex mutex;        ///< held around every NCCL call but ncclCommAbort, which blocks
    ncclComm_t comm = nullptr;
    ncclComm_t part = nullptr;  ///< where a split puts its result, which may be after split() has given up

    /// Returns the handle in `which` and leaves null there.
    ncclComm_t take(ncclComm_t Handle::*which);
  };

  void start(const std::string& id);
  void settle(const Operation& operation, std::int64_t number, ncclResult_t result);
  void inspect(const Operation& operation, std::int64_t number, Clock::duration waited);
  void require_open(const std::string& what) const;
  std::string reason(ncclResult_t result) const;

  std::shared_ptr<Communicator> host_;
  Device device_;
  std::chrono::milliseconds timeout_;
  std::shared_ptr<Handle> handle_;
};

}  // namespace lockstep::comm
