// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/checksum.h"

namespace lockstep::checkpoint {

void Hasher::update(std::span<const std::byte> bytes) {
  hash_.update(bytes);
  bytes_ += bytes.size();
}

Digest digest_of(std::span<const std::byte> bytes) {
  Hasher hasher;
  hasher.update(bytes);
  return hasher.digest();
}

}  // namespace lockstep::checkpoint
