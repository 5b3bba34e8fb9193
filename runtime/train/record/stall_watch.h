// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/base/error.h"

namespace lockstep::train {

/// Finds, from a thread of its own, a system call on a checkpoint that does not return: a network file system whose
/// server is gone, a broken disk. The thread that made the call cannot be had back.
class StallWatch {
 public:
  /// Where the run is, for the error: "in step 5". Called by the watch's thread.
  using Where = std::function<std::string()>;
  /// Is told once what has not returned; should end the process.
  using OnStall = std::function<void(const Error&)>;

  /// `limit`: how long one call may take. It has to be long beside an fsync of a whole checkpoint on a slow disk.
  StallWatch(std::chrono::milliseconds limit, Where where, OnStall on_stall);

 private:
  std::mutex mutex_;
  std::condition_variable_any never_;
  std::jthread thread_;
};

}  // namespace lockstep::train
