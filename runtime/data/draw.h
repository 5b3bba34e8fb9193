// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "runtime/base/counter_rng.h"
#include "runtime/data/dataset.h"

namespace lockstep::data {

/// The purpose of random numbers of a sample: the layer word of the counter, which tells them apart.
enum class Augmentation : std::uint32_t {
  kPadCrop = 0,
  kFlip = 1,
  kResizedCrop = 2,
  kColorJitter = 3,
  kPatch = 4,
  kMirror = 5,
  kIntensity = 6,
  kMixup = 7,
  kMaskedTokens = 8,
  kWindow = 20
};

/// Four random words that depend on the sample's key alone. `call` tells several draws apart.
inline std::array<std::uint32_t, 4> draw(const SampleKey& key, Augmentation what, std::uint32_t call = 0) {
  const CounterRng random(key.seed, CounterRng::Purpose::kAugmentation, static_cast<std::uint32_t>(what), key.epoch,
                          call);
  return random.block(static_cast<std::uint64_t>(key.index));
}

/// Uniform in [low, high).
inline double uniform(std::uint32_t bits, double low, double high) {
  return low + (high - low) * static_cast<double>(uniform_from_bits(bits));
}

/// Uniform in 0 .. count - 1, for a count below 2^32. The bias is below count / 2^32.
inline std::int64_t below(std::uint32_t bits, std::int64_t count) {
  return static_cast<std::int64_t>(std::uint64_t{bits} * static_cast<std::uint64_t>(count) >> 32);
}

}  // namespace lockstep::data
