// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/printable.h"

#include <fmt/format.h>

namespace lockstep {

std::string printable(std::string_view text) {
  std::string result;
  for (const char each : text) {
    const auto code = static_cast<unsigned char>(each);
    const bool control = (code < 0x20 && each != '\n' && each != '\t') || code == 0x7f;
    control ? result += fmt::format("\\x{:02x}", code) : result += each;
  }
  return result;
}

}  // namespace lockstep
