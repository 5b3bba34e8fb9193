// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace lockstep::launcher {

/// How long to wait before lost ranks are started again. A cause that passes needs no wait; one that stays would use
/// all restarts up in seconds.
class RestartPause {
 public:
  /// After ranks that had come to `step` were lost: nothing where no earlier ones had come so far, else 1 s, and twice
  /// as long each time in a row, at most 30 s.
  std::chrono::seconds after(std::uint64_t step);

 private:
  std::uint64_t furthest_ = 0;
  std::chrono::seconds last_{0};
};

}  // namespace lockstep::launcher
