// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/base/descriptor.h"

namespace lockstep::train {

/// The words that the process prints at once when it is asked to stop.
struct StopNotice {
  int descriptor = -1;          ///< where; -1: nowhere
  bool ends_on_second = false;  ///< a second SIGINT, of a person who would not wait, ends the process without saving
};

/// While it lives, SIGTERM, SIGINT, SIGHUP and SIGUSR1 (what mpirun hands on) ask for a save and an exit instead of
/// ending the process. One at a time.
class StopSignals {
 public:
  explicit StopSignals(const StopNotice& notice = {});
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Whether one arrived.
  bool requested() const;

 private:
  Descriptor words_;  ///< for the notice, so that a stopped terminal does not keep the handler
};

/// "stopping after this step and saving", and what a second Ctrl-C does.
extern const char* const kStopNotice;

}  // namespace lockstep::train
