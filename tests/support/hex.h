// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace lockstep {

/// A file in a golden one: two hexadecimal digits a byte.
inline std::string file_of_hex(const std::string& digits) {
  std::string file;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    file += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return file;
}

}  // namespace lockstep
