// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::data {

/// Positions [begin, end) of a sequence.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

/// Part `index` of `parts` contiguous ones whose sizes differ by at most one; parts may be empty.
inline Range share(Range whole, std::int64_t index, std::int64_t parts) {
  return {whole.begin + index * whole.size() / parts, whole.begin + (index + 1) * whole.size() / parts};
}

}  // namespace lockstep::data
