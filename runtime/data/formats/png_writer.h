// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace lockstep::data {

/// A PNG's content: 8-bit pixels [height, width, channels], of 1 channel grey and of 3 RGB. Throws
/// std::invalid_argument for other extents than the pixels have.
std::string png_of(std::span<const std::uint8_t> pixels, std::int64_t width, std::int64_t height, int channels);

}  // namespace lockstep::data
