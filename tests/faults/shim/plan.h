// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <string>

namespace lockstep::faults {

/// A call of this process, counted among those with the same operation and the same stable name.
struct Call {
  std::string operation;  ///< "open", "write", ...
  std::string path;       ///< below the watched folder
  bool grows = false;     ///< whether it asks the disk for space
  int number = 0;         ///< from 1 on
};

/// What is made of a call.
struct Fault {
  bool kills = false;   ///< the process dies instead of making it, or after half of it
  bool halves = false;  ///< a read or write of half its bytes
  bool hangs = false;   ///< the call never returns
  int error = 0;        ///< an errno; the call is not made, or, of a close, made and reported as failed
};

/// Which call of which process gets which fault, as environment variables say:
///
/// LOCKSTEP_FAULTS_POINT  "ROLE OPERATION PATH NUMBER": ROLE is `main` (a lone process or the launcher) or `rank0`,
///                        `rank1`, ... of the first start; PATH is the stable name; NUMBER counts from 1.
/// LOCKSTEP_FAULTS_FAULT  kill: SIGKILL instead of the call. torn: SIGKILL after half of a write. short: half of a read
///                        or write. hang: it never returns. A number: this errno.
/// LOCKSTEP_FAULTS_LASTS  a number: that many calls like it get the fault. "writing": it and all later calls that ask
///                        the disk for space. "all": it and all later calls.
class Plan {
 public:
  Plan();

  const std::string& role() const { return role_; }
  /// Numbers the call and says what is to become of it.
  Fault next(Call& call);

 private:
  bool is_hit(const Call& call);

  std::string role_;
  std::string point_;  ///< without its number
  int number_ = 0;
  std::string fault_;
  std::string lasts_;
  bool begun_ = false;
  std::mutex mutex_;
  std::map<std::string, int> counts_;
};

}  // namespace lockstep::faults
