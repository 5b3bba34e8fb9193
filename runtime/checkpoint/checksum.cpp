// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/checksum.h"

#include <xxhash.h>

#include <new>

namespace lockstep::checkpoint {

void Hasher::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

Hasher::Hasher() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_128bits_reset(state_.get());
}

void Hasher::update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
  bytes_ += bytes.size();
}

Digest Hasher::digest() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
  Digest digest{bytes_, {}};
  for (const unsigned char byte : canonical.digest) {
    constexpr const char* kDigits = "0123456789abcdef";
    digest.checksum += kDigits[byte >> 4];
    digest.checksum += kDigits[byte & 15];
  }
  return digest;
}

Digest digest_of(std::span<const std::byte> bytes) {
  Hasher hasher;
  hasher.update(bytes);
  return hasher.digest();
}

}  // namespace lockstep::checkpoint
