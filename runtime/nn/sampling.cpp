// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "runtime/base/error.h"

namespace lockstep::nn {

namespace {

/// In [0, 1), 53 bits: 24 of them would never reach the rare tokens of a large vocabulary.
double uniform(const CounterRng& rng, std::uint64_t position) {
  const std::uint64_t high = rng.at(2 * position) >> 5, low = rng.at(2 * position + 1) >> 6;
  return static_cast<double>(high << 26 | low) * 0x1p-53;
}

void require_finite(std::span<const float> logits) {
  bool any = false;
  for (const float logit : logits) {
    if (std::isnan(logit) || logit == std::numeric_limits<float>::infinity()) {
      throw UsageError("a token cannot be drawn: a logit is not finite");
    }
    any = any || std::isfinite(logit);
  }
  if (!any) throw UsageError("a token cannot be drawn: no logit is finite");
}

}  // namespace

FieldProblems problems_of(const SamplingOptions& options) {
  FieldChecks checks;
  checks.not_negative(options.temperature, "temperature");
  checks.not_negative(static_cast<double>(options.top_k), "top_k");
  return checks.problems();
}

std::int64_t sample_token(std::span<const float> logits, const SamplingOptions& options, const CounterRng& rng,
                          std::uint64_t position) {
  require_none(problems_of(options), "sampling");
  require_finite(logits);
  std::vector<std::int64_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto at = [&logits](std::int64_t token) { return logits[static_cast<std::size_t>(token)]; };
  const auto likelier = [&at](std::int64_t a, std::int64_t b) { return at(a) != at(b) ? at(a) > at(b) : a < b; };
  const std::int64_t best = *std::ranges::min_element(tokens, likelier);
  if (options.temperature == 0 || options.top_k == 1) return best;
  const auto kept = static_cast<std::size_t>(options.top_k);
  if (kept > 0 && kept < tokens.size()) {
    std::ranges::nth_element(tokens, tokens.begin() + static_cast<std::ptrdiff_t>(kept), likelier);
    tokens.resize(kept);
    std::ranges::sort(tokens);  // the order of the sum below
  }
  std::vector<double> sums;
  double sum = 0;
  for (const std::int64_t token : tokens) {
    sum += std::exp((static_cast<double>(at(token)) - static_cast<double>(at(best))) / options.temperature);
    sums.push_back(sum);
  }
  // The first sum above the draw: a token without probability adds nothing, so it is never the first.
  const auto drawn = std::ranges::upper_bound(sums, uniform(rng, position) * sum);
  // The product may round up to the whole sum.
  return drawn == sums.end() ? best : tokens[static_cast<std::size_t>(drawn - sums.begin())];
}

}  // namespace lockstep::nn
