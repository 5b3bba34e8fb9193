// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/restart_pause.h"

#include <algorithm>

namespace lockstep::launcher {

using std::chrono::seconds;

std::chrono::seconds RestartPause::after(std::uint64_t step) {
  if (step > furthest_) {
    furthest_ = step;
    return last_ = seconds(0);
  }
  return last_ = std::clamp(2 * last_, seconds(1), seconds(30));
}

}  // namespace lockstep::launcher
