// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::comm {

/// What makes this process one of several ranks. Its end waits for the others; after an error it leaves them alone.
class Membership {
 public:
  virtual ~Membership() = default;
  /// Tells the others that this rank makes no more calls after an error.
  virtual void fail() = 0;
  /// Has every other process of the job ended with this code, without waiting for them; the caller then ends this one.
  virtual void abort(int exit_code) = 0;
};

}  // namespace lockstep::comm
