// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "runtime/base/counter_rng.h"
#include "runtime/kernels/distribution.h"
#include "runtime/kernels/functors/logarithm.h"
#include "runtime/kernels/functors/trigonometry.h"
#include "runtime/kernels/random_keys.h"

namespace lockstep::kernels {

/// The numbers of a key's stream: one of 32 random bits for each element.
LOCKSTEP_HOST_DEVICE inline CounterRng stream_of(const RandomKey& key) {
  return CounterRng(key.seed, CounterRng::Purpose::kUser, key.stream, key.step);
}

/// Elements 2 i and 2 i + 1 of a stream from their bits.
struct RandomPair {
  float first;
  float second;
};

/// low + (high - low) u; below `high` where the sum is not rounded up to it.
struct Uniform {
  float low;
  float span;

  Uniform(double first, double second) : low(static_cast<float>(first)), span(static_cast<float>(second - first)) {}

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline RandomPair operator()(std::uint32_t a, std::uint32_t b) const {
    return {low + span * uniform_from_bits(a), low + span * uniform_from_bits(b)};
  }
};

/// Box and Muller's transform: "A note on the generation of random normal deviates", 1958.
struct Normals {
  float mean;
  float deviation;

  Normals(double first, double second) : mean(static_cast<float>(first)), deviation(static_cast<float>(second)) {}

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline RandomPair operator()(std::uint32_t a, std::uint32_t b) const {
    // In (0, 1), with 23 bits: log 0 never comes.
    const float u = (static_cast<float>(a >> 9) + 0.5f) * 0x1p-23f;
    const float radius = deviation * std::sqrt(-2.0f * Log::value(u));
    const float angle = 6.28318531f * uniform_from_bits(b);
    return {mean + radius * sin_of(angle, 1), mean + radius * sin_of(angle, 0)};
  }
};

/// Calls visit(transform) with the function object that makes pairs of the distribution.
template <class Visit>
void visit_distribution(Distribution distribution, double first, double second, Visit visit) {
  if (distribution == Distribution::kUniform) {
    visit(Uniform(first, second));
  } else {
    visit(Normals(first, second));
  }
}

}  // namespace lockstep::kernels
