// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::train {

/// While it lives, SIGTERM, SIGINT, SIGHUP and SIGUSR1 (what mpirun hands on) ask for a save and an exit instead of
/// ending the process. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Whether one arrived.
  bool requested() const;
};

}  // namespace lockstep::train
