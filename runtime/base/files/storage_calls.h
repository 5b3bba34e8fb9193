// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/files/storage_faults.h"

namespace lockstep {

/// A system call, on a file that the run waits for, that has not returned yet.
struct PendingCall {
  StorageOperation operation;
  std::string path;
  std::chrono::steady_clock::time_point begin;
};

/// While it lives, the calling thread makes this call. Thread-safe.
class CallUnderWay {
 public:
  CallUnderWay(StorageOperation operation, const std::string& path);
  ~CallUnderWay();
  CallUnderWay(const CallUnderWay&) = delete;
  CallUnderWay& operator=(const CallUnderWay&) = delete;

 private:
  std::uint64_t id_;
};

/// The call under way that began first. Thread-safe.
std::optional<PendingCall> oldest_pending_call();

}  // namespace lockstep
