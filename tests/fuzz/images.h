// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lockstep::fuzz {

/// A JPEG and a PNG of 8 x 8 pixels, in hexadecimal digits.
inline const std::string kJpeg =
    "ffd8ffe000104a46494600010100000100010000ffdb0043000d090a0b0a080d0b0a0b0e0e0d0f13201513121213271c1e17202e2931302e"
    "292d2c333a4a3e333646372c2d405741464c4e525352323e5a615a50604a51524fffdb0043010e0e0e131113261515264f352d354f4f4f4f"
    "4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4fffc00011080008000803"
    "012200021101031101ffc4001500010100000000000000000000000000000004ffc400191001000203000000000000000000000000000506"
    "2231a1ffc4001501010100000000000000000000000000000305ffc4001c1100010305000000000000000000000000030001040512132131"
    "ffda000c03010002110311003f008236bfac380269a516eea5a6cd3606daffd9";
inline const std::string kPng =
    "89504e470d0a1a0a0000000d49484452000000080000000808020000004b6d29dc000000194944415478da63646088926360c0442c0c720c"
    "58c1e09400003b9b021caa4390bb0000000049454e44ae426082";

inline std::vector<std::string> small_images() {
  const auto bytes_of = [](const std::string& digits) {
    std::string bytes;
    for (std::size_t i = 0; i < digits.size(); i += 2)
      bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
    return bytes;
  };
  return {bytes_of(kJpeg), bytes_of(kPng)};
}

}  // namespace lockstep::fuzz
