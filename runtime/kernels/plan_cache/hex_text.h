// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::kernels {

/// An opaque structure of a library as a plan's value: two hexadecimal digits a byte, the higher first.
std::string hex_of(std::span<const std::byte> bytes);

/// Reads what hex_of() wrote for bytes.size() bytes. Returns false, and leaves `bytes` as they are, for any other text.
bool parse_hex(std::string_view text, std::span<std::byte> bytes);

}  // namespace lockstep::kernels
