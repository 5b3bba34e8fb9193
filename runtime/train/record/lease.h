// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/base/descriptor.h"

namespace lockstep::train {

/// A lock for a file system without flock: a file that names its holder, which renews it all the time. It is anybody's
/// once its holder is known to have ended, or renews it no longer. Two processes that take over the same abandoned file
/// within milliseconds may both hold it for a moment; the first one then says so.
class Lease {
 public:
  using Milliseconds = std::chrono::milliseconds;
  /// By the clock of each process alone: the clocks of hosts differ.
  struct Times {
    Milliseconds renewal{std::chrono::seconds(5)};
    Milliseconds lapse{std::chrono::seconds(30)};  ///< without a renewal, seen from outside
  };

  explicit Lease(std::string path) : Lease(std::move(path), Times{}) {}
  Lease(std::string path, Times times);
  /// Removes the file, if it is held.
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  /// Takes it where nobody holds it; `holder` names this process to others. To be called again and again: it takes time
  /// to see that a holder elsewhere does not renew it. Throws FileError where there can be no such file.
  bool try_take(const std::string& holder);
  /// Once try_take() has failed: whether who holds it is alive. Otherwise that is not known yet.
  bool holder_lives() const { return holder_lives_; }
  /// Who held it at the last try; may be empty.
  std::string holder() const;

 private:
  using Clock = std::chrono::steady_clock;

  bool create(const std::string& holder);
  /// Looks at what another process has written; whether that has ended.
  bool is_abandoned();
  /// Takes the file away, if it is still what is_abandoned() has seen.
  void remove_abandoned() const;
  void renew_on();
  /// Whether the file at the path is known to be another process's, or gone at two looks.
  bool is_lost();
  /// Whether the file at the path is this one's.
  bool is_in_place() const;

  std::string path_;
  Times times_;
  std::string identity_;
  std::string words_;  ///< this one's, until the number of renewals
  Descriptor file_;    ///< while it is held
  bool was_gone_ = false;

  std::string seen_;
  Clock::time_point seen_since_;
  bool holder_lives_ = false;

  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  std::thread renewing_;
};

}  // namespace lockstep::train
