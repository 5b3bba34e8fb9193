// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>
#include <vector>

#include "comm/group/device_watch/watched_work.h"

namespace lockstep::comm {

/// The watch over a process's communicators between devices: its threads, and the failure that ended them. All
/// communicators end together, those of other groups too: on a device the kernels of one may wait behind those of
/// another that hangs.
///
/// One thread asks the device, another one finds out who waits too long: where a thread of the program waits inside the
/// driver for a kernel that hangs, the first of them is held up there, too, and the second tells of the hang.
///
/// How they end. An abort tells the kernels of its communicator to stop, then waits for them. What they stand behind, a
/// kernel of another communicator, stops only once that one is aborted, and a communicator that a graph refers to is
/// kept as long as the graph. So every abort has a thread of its own, which holds no lock, and the graphs of the
/// devices are given up meanwhile: nothing waits for the host's threads, whatever they do.
class DeviceWatchdog {
 public:
  DeviceWatchdog();
  /// Waits for the aborts, for seconds at most.
  ~DeviceWatchdog();
  DeviceWatchdog(const DeviceWatchdog&) = delete;
  DeviceWatchdog& operator=(const DeviceWatchdog&) = delete;

  /// The process's: one as long as somebody holds it.
  static std::shared_ptr<DeviceWatchdog> of_process();

  /// Watches over `work` until remove() has returned, which waits for its look(). Throws what fail() was given.
  void add(WatchedWork& work);
  void remove(WatchedWork& work);

  /// Ends all groups of the process. From now on every wait for their devices throws `failure`; a later one is ignored.
  void fail(std::exception_ptr failure);
  bool failed() const { return failed_; }
  /// Throws what fail() was given.
  void require_working();

 private:
  /// Aborts that have not returned yet; outlives the watchdog where one never does.
  struct Aborts {
    std::mutex mutex;
    std::condition_variable changed;
    int running = 0;
  };

  void inspect_works(const std::stop_token& stop);
  void look_at_works(const std::stop_token& stop);
  void fail_locked(const std::exception_ptr& failure);
  void start(std::function<void()> abort);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<WatchedWork*> works_;
  std::set<int> failed_devices_;  ///< indices
  std::exception_ptr failure_;
  std::atomic<bool> failed_ = false;
  std::shared_ptr<Aborts> aborts_ = std::make_shared<Aborts>();
  std::mutex looking_;      ///< held while look() of any work is called
  std::jthread inspector_;  ///< last, with the next one: they end before what they use
  std::jthread looker_;
};

}  // namespace lockstep::comm
