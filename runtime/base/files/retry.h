// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <thread>

#include "runtime/base/files/durable_file.h"

namespace lockstep {

/// How often work on a disk is tried when the disk refuses for what may be a moment: full, failing, a stale handle.
struct RetryPolicy {
  int attempts = 3;
  std::chrono::milliseconds pause{100};  ///< before the second attempt; doubles each time
};

/// Runs `work` from its beginning until it succeeds. From the beginning, because a failed fsync drops the data it could
/// not write: repeating the fsync alone would report a success that did not happen.
template <class Work>
auto with_retries(const RetryPolicy& policy, Work&& work) {
  std::chrono::milliseconds pause = policy.pause;
  for (int attempt = 1;; ++attempt, pause *= 2) {
    try {
      return work();
    } catch (const FileError& error) {
      if (!error.transient() || attempt >= policy.attempts) throw;
    }
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace lockstep
