// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/byte_size.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>

namespace lockstep {

std::string byte_size(double bytes) {
  static constexpr std::array kUnits{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return unit == 0 ? fmt::format("{:.0f} {}", bytes, kUnits[unit]) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

}  // namespace lockstep
