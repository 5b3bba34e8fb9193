// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/hash.h"

#include <xxhash.h>

#include <new>

namespace lockstep {

void Hash128::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

Hash128::Hash128() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_128bits_reset(state_.get());
}

void Hash128::update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

std::string Hash128::hex() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : canonical.digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::uint64_t Hash128::high64() const { return XXH3_128bits_digest(state_.get()).high64; }

std::string hash128_of(std::string_view text) {
  Hash128 hash;
  hash.update(text);
  return hash.hex();
}

}  // namespace lockstep
