// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/hmac.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <vector>

namespace lockstep::comm {

namespace {

constexpr std::size_t kBlockBytes = 64;
constexpr std::size_t kLengthBytes = 8;
constexpr std::byte kInner{0x36};
constexpr std::byte kOuter{0x5c};

using State = std::array<std::uint32_t, 8>;

/// The first 32 bits of the fractions of the square roots of the first 8 primes.
constexpr State kStart{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

/// And of the cube roots of the first 64.
constexpr std::array<std::uint32_t, 64> kRounds{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/// The words of a block, and those that it is expanded to.
std::array<std::uint32_t, 64> schedule_of(std::span<const std::byte, kBlockBytes> block) {
  std::array<std::uint32_t, 64> words{};
  for (std::size_t i = 0; i < kBlockBytes; ++i) words[i / 4] = words[i / 4] << 8 | std::to_integer<unsigned>(block[i]);
  for (std::size_t i = 16; i < words.size(); ++i) {
    const std::uint32_t a = words[i - 15];
    const std::uint32_t b = words[i - 2];
    words[i] = words[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + words[i - 7] +
               (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  return words;
}

void add_block(State& state, std::span<const std::byte, kBlockBytes> block) {
  const std::array<std::uint32_t, 64> words = schedule_of(block);
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t next1 = h + sum1 + ((e & f) ^ (~e & g)) + kRounds[i] + words[i];
    const std::uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t next2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + next1;
    d = c;
    c = b;
    b = a;
    a = next1 + next2;
  }
  const State added{a, b, c, d, e, f, g, h};
  std::ranges::transform(state, added, state.begin(), std::plus<>());
}

/// A one, zeros up to the end of a block, and the length in bits.
std::vector<std::byte> padded(std::span<const std::byte> message) {
  std::vector<std::byte> whole(message.begin(), message.end());
  whole.push_back(std::byte{0x80});
  whole.resize((whole.size() + kLengthBytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes);
  std::uint64_t bits = std::uint64_t{message.size()} * 8;
  for (auto last = whole.rbegin(); bits > 0; ++last, bits >>= 8) *last = static_cast<std::byte>(bits);
  return whole;
}

/// The digest of the key, which `mask` makes another one, and the message.
Digest256 digest_behind(std::array<std::byte, kBlockBytes> key, std::byte mask, std::span<const std::byte> message) {
  std::vector<std::byte> whole;
  for (const std::byte byte : key) whole.push_back(byte ^ mask);
  whole.insert(whole.end(), message.begin(), message.end());
  return sha256(whole);
}

}  // namespace

Digest256 sha256(std::span<const std::byte> message) {
  State state = kStart;
  const std::vector<std::byte> whole = padded(message);
  for (std::size_t at = 0; at < whole.size(); at += kBlockBytes) {
    add_block(state, std::span<const std::byte, kBlockBytes>(whole.data() + at, kBlockBytes));
  }
  Digest256 digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  }
  return digest;
}

Digest256 hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message) {
  std::array<std::byte, kBlockBytes> block{};
  const Digest256 short_key = key.size() > block.size() ? sha256(key) : Digest256{};
  std::ranges::copy(key.size() > block.size() ? std::as_bytes(std::span(short_key)) : key, block.begin());
  const Digest256 inner = digest_behind(block, kInner, message);
  return digest_behind(block, kOuter, std::as_bytes(std::span(inner)));
}

bool are_equal(const Digest256& a, const Digest256& b) {
  std::uint8_t difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference = static_cast<std::uint8_t>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

}  // namespace lockstep::comm
