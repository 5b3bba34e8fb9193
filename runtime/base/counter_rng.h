// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "runtime/base/host_device.h"

namespace lockstep {

/// The numbers of Philox4x32-10.
struct Philox {
  static constexpr int kRounds = 10;
  static constexpr std::uint32_t kMultiplier0 = 0xD2511F53u;
  static constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57u;
  static constexpr std::uint32_t kKeyStep0 = 0x9E3779B9u;
  static constexpr std::uint32_t kKeyStep1 = 0xBB67AE85u;
};

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011): four random
/// words that depend on nothing but the key and the counter, so that a mask is the same on every rank, device and
/// thread.
LOCKSTEP_HOST_DEVICE inline std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_low,
                                                                std::uint64_t counter_high) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key);
  std::uint32_t k1 = static_cast<std::uint32_t>(key >> 32);
  std::uint32_t c0 = static_cast<std::uint32_t>(counter_low);
  std::uint32_t c1 = static_cast<std::uint32_t>(counter_low >> 32);
  std::uint32_t c2 = static_cast<std::uint32_t>(counter_high);
  std::uint32_t c3 = static_cast<std::uint32_t>(counter_high >> 32);
  for (int round = 0; round < Philox::kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{Philox::kMultiplier0} * c0;
    const std::uint64_t product1 = std::uint64_t{Philox::kMultiplier1} * c2;
    const std::uint32_t n0 = static_cast<std::uint32_t>(product1 >> 32) ^ c1 ^ k0;
    const std::uint32_t n2 = static_cast<std::uint32_t>(product0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<std::uint32_t>(product1);
    c3 = static_cast<std::uint32_t>(product0);
    c0 = n0;
    c2 = n2;
    k0 += Philox::kKeyStep0;
    k1 += Philox::kKeyStep1;
  }
  return {c0, c1, c2, c3};
}

/// Uniform in [0, 1), 24 bits.
LOCKSTEP_HOST_DEVICE inline float uniform_from_bits(std::uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

/// A stream of random numbers named by (seed, purpose, layer, step, call): `at(i)` needs no state, so any rank can draw
/// any element. Distinct purposes never share numbers.
class CounterRng {
 public:
  /// The purpose of a stream of numbers; part of the counter.
  enum class Purpose : std::uint32_t {
    kDropout = 1,
    kInitialization = 2,
    kShuffle = 3,
    kAugmentation = 4,
    kSynthetic = 5,
    kUser = 6  ///< tensors of random numbers that a program asks for
  };

  /// `call` tells streams of one layer and step apart; below 2^24.
  LOCKSTEP_HOST_DEVICE CounterRng(std::uint64_t seed, Purpose purpose, std::uint32_t layer = 0, std::uint64_t step = 0,
                                  std::uint32_t call = 0)
      // The step is folded into the key, so that counter words are left for call, purpose, layer and a 64-bit element
      // index.
      : key_(seed + 0x9E3779B97F4A7C15u * step),
        high_(static_cast<std::uint64_t>(call) << 40 | static_cast<std::uint64_t>(purpose) << 32 | layer) {}

  /// Four words of block `block`: elements 4 block .. 4 block + 3.
  LOCKSTEP_HOST_DEVICE std::array<std::uint32_t, 4> block(std::uint64_t block) const {
    return philox(key_, block, high_);
  }
  /// The input of philox(): the key and the upper half of the counter.
  std::uint64_t key() const { return key_; }
  std::uint64_t high() const { return high_; }
  LOCKSTEP_HOST_DEVICE std::uint32_t at(std::uint64_t index) const { return block(index / 4)[index % 4]; }
  LOCKSTEP_HOST_DEVICE float uniform(std::uint64_t index) const { return uniform_from_bits(at(index)); }

 private:
  std::uint64_t key_;
  std::uint64_t high_;
};

}  // namespace lockstep
