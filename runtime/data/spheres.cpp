// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/spheres.h"

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/base/counter_rng.h"
#include "runtime/base/error.h"
#include "runtime/base/option_checks.h"

namespace lockstep::data {

namespace {

constexpr int kRank = 4;

// The layer word of the counter tells what a sample draws apart, and from the tables of SyntheticDataset. The data set
// is the same for every seed of a job.
constexpr std::uint64_t kSpheresSeed = 0;
constexpr std::uint32_t kCount = 16;
constexpr std::uint32_t kPlaces = 17;
constexpr std::uint32_t kRadii = 18;
constexpr std::uint32_t kVoxelNoise = 19;

/// Mean 0 and variance 1, close to normal: a sum of uniform numbers, which rounds alike on every machine.
float noise_from_words(const std::array<std::uint32_t, 4>& words) {
  constexpr float kRootOfThree = 1.7320508f;
  const float sum = (uniform_from_bits(words[0]) + uniform_from_bits(words[1])) +
                    (uniform_from_bits(words[2]) + uniform_from_bits(words[3]));
  return (sum - 2.0f) * kRootOfThree;
}

struct Sphere {
  std::array<double, 3> center;
  double radius;
};

/// Marks the voxels of a sphere in `mask` [D, H, W].
void mark(const Sphere& sphere, const Shape& shape, std::span<float> mask) {
  std::array<std::int64_t, 3> first{};
  std::array<std::int64_t, 3> last{};
  for (std::size_t d = 0; d < 3; ++d) {
    const double highest = static_cast<double>(shape[static_cast<int>(d)] - 1);
    first[d] = static_cast<std::int64_t>(std::clamp(sphere.center[d] - sphere.radius, 0.0, highest));
    last[d] = static_cast<std::int64_t>(std::clamp(sphere.center[d] + sphere.radius, 0.0, highest));
  }
  const auto square = [&sphere](std::size_t d, std::int64_t at) {
    const double distance = static_cast<double>(at) + 0.5 - sphere.center[d];
    return distance * distance;
  };
  const double within = sphere.radius * sphere.radius;
  for (std::int64_t z = first[0]; z <= last[0]; ++z) {
    for (std::int64_t y = first[1]; y <= last[1]; ++y) {
      float* const row = mask.data() + (z * shape[1] + y) * shape[2];
      for (std::int64_t x = first[2]; x <= last[2]; ++x) {
        if (square(0, z) + square(1, y) + square(2, x) <= within) row[x] = 1.0f;
      }
    }
  }
}

}  // namespace

FieldProblems problems_of(const SpheresOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  if (kPositive.holds(options.min_radius) && kPositive.holds(options.max_radius)) {
    checks.check(options.max_radius >= options.min_radius, "max_radius", "at least min_radius", options.max_radius,
                 {"min_radius"});
  }
  checks.not_negative(static_cast<double>(options.first_sample), "first_sample");
  return checks.problems();
}

SpheresDataset::SpheresDataset(const SpheresOptions& options) : options_(options) {
  require_none(problems_of(options), "spheres");
}

Shape SpheresDataset::target_shape() const { return Shape(options_.shape.extents().first(kRank - 1)); }

void SpheresDataset::get(const SampleKey& key, const Sample& sample) const {
  const auto number = static_cast<std::uint64_t>(options_.first_sample + key.index);
  const auto stream = [number](std::uint32_t kind) {
    return CounterRng(kSpheresSeed, CounterRng::Purpose::kSynthetic, kind, number);
  };
  const CounterRng places = stream(kPlaces);
  const CounterRng radii = stream(kRadii);
  std::ranges::fill(sample.target, 0.0f);
  const std::uint64_t spheres = 1 + stream(kCount).at(0) % static_cast<std::uint64_t>(options_.most);
  for (std::uint64_t i = 0; i < spheres; ++i) {
    Sphere sphere{};
    for (std::size_t d = 0; d < 3; ++d) {
      sphere.center[d] =
          static_cast<double>(places.uniform(4 * i + d)) * static_cast<double>(options_.shape[static_cast<int>(d)]);
    }
    sphere.radius =
        options_.min_radius + (options_.max_radius - options_.min_radius) * static_cast<double>(radii.uniform(i));
    mark(sphere, options_.shape, sample.target);
  }
  const CounterRng noise = stream(kVoxelNoise);
  const auto scale = static_cast<float>(options_.noise);
  const auto channels = static_cast<std::size_t>(options_.shape.back());
  for (std::size_t i = 0; i < sample.values.size(); ++i) {
    sample.values[i] = sample.target[i / channels] + scale * noise_from_words(noise.block(i));
  }
}

}  // namespace lockstep::data
