// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace lockstep::comm {

/// A wait that has lasted for patience() looks for lost ranks so often.
constexpr auto kInspection = std::chrono::milliseconds(100);

constexpr std::chrono::milliseconds patience(std::chrono::milliseconds timeout) {
  return std::min<std::chrono::milliseconds>(std::chrono::seconds(1), timeout / 4);
}

/// The number of a channel's last operation, its end.
constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();

}  // namespace lockstep::comm
