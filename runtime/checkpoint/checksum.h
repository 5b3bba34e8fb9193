// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/hash.h"

namespace lockstep::checkpoint {

/// The size and XXH3-128 checksum (32 hexadecimal digits) of some bytes. It tells damage, not malice.
struct Digest {
  std::uint64_t bytes = 0;
  std::string checksum;

  friend bool operator==(const Digest&, const Digest&) = default;
};

/// The digest of bytes that come piece by piece.
class Hasher {
 public:
  void update(std::span<const std::byte> bytes);
  Digest digest() const { return {bytes_, hash_.hex()}; }

 private:
  Hash128 hash_;
  std::uint64_t bytes_ = 0;
};

Digest digest_of(std::span<const std::byte> bytes);

}  // namespace lockstep::checkpoint
