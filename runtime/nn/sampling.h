// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/counter_rng.h"
#include "runtime/base/field_checks.h"

namespace lockstep::nn {

struct SamplingOptions {
  /// Divides the logits: below 1 likely tokens come more often, above 1 less; 0: the likeliest token alone.
  double temperature = 1;
  std::int64_t top_k = 0;  ///< only so many of the likeliest tokens may come; 0: all
};

/// All that is wrong with the options.
FieldProblems problems_of(const SamplingOptions& options);

/// A token drawn from softmax(logits / temperature) over the top_k largest logits; of equal logits the first is the
/// larger. The draw is number `position` of `rng`'s stream, so the same call gives the same token on every machine.
/// Throws FieldError for options without a meaning, and UsageError where there are no logits, where one is NaN or
/// +infinity, or where all are -infinity.
std::int64_t sample_token(std::span<const float> logits, const SamplingOptions& options, const CounterRng& rng,
                          std::uint64_t position);

}  // namespace lockstep::nn
