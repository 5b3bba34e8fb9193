// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::comm {

// None of the libraries that this project needs has a keyed digest, and one of its own is smaller than one more of
// them.

/// 32 bytes, the first one the highest.
using Digest256 = std::array<std::uint8_t, 32>;

/// SHA-256, FIPS 180-4. It holds the whole message: for messages of a few KiB.
Digest256 sha256(std::span<const std::byte> message);

/// HMAC-SHA-256, RFC 2104: whoever does not have the key can neither make it nor change the message behind it.
Digest256 hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message);

/// Takes the same time wherever they differ.
bool are_equal(const Digest256& a, const Digest256& b);

}  // namespace lockstep::comm
