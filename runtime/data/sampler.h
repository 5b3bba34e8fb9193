// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/data/formats/range.h"

namespace lockstep::data {

/// All that a checkpoint has to keep of the order of samples.
struct SamplerState {
  std::uint64_t epoch = 0;
  std::int64_t cursor = 0;                 ///< position of the next step's first sample in the epoch's permutation
  std::optional<std::uint64_t> seed = {};  ///< that orders the samples, where it is known

  friend bool operator==(const SamplerState&, const SamplerState&) = default;
};

/// Whether a sampler with this seed goes on in the order that `state` is a place of: between two epochs any does.
bool goes_on(const SamplerState& state, std::uint64_t seed);

/// Steps that an epoch of `size` samples takes. A global batch larger than the data set is the whole epoch.
std::int64_t steps_per_epoch(std::int64_t size, std::int64_t global_batch, bool drop_last);

/// One step's global batch.
struct StepPlan {
  std::uint64_t epoch = 0;
  std::span<const std::int64_t> samples;  ///< indices in the data set, in order; valid until the next call of next()
  SamplerState after;                     ///< where the step behind this one begins
};

/// Names the samples of each step: a permutation an epoch that depends on (seed, epoch) alone, cut into global batches.
/// The last batch of an epoch is smaller, or left out. A global batch larger than the data set is the whole epoch.
class Sampler {
 public:
  struct Options {
    std::int64_t size = 0;  ///< samples in the data set, 1 .. 2^32
    std::int64_t global_batch = 1;
    std::uint64_t seed = 0;
    bool shuffle = true;
    bool drop_last = false;
  };
  /// Throws UsageError when `start` lies outside the data set, as it belongs to another one, and where it lies amid an
  /// epoch that another seed orders.
  explicit Sampler(const Options& options, const SamplerState& start = {});

  StepPlan next();
  std::int64_t steps_per_epoch() const;

 private:
  void permute();

  Options options_;
  SamplerState state_;
  std::vector<std::int64_t> order_;
  std::uint64_t order_epoch_ = 0;
};

}  // namespace lockstep::data
