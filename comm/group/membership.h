// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::comm {

/// This process's part in a job of several ranks. The destructor waits for the other ranks, unless an error was met.
class Membership {
 public:
  virtual ~Membership() = default;
  /// Tells the others that this rank makes no more calls after an error.
  virtual void fail() = 0;
  /// Makes every other process of the job end with this code, and does not wait for it; the caller then ends this one.
  virtual void abort(int exit_code) = 0;
};

}  // namespace lockstep::comm
