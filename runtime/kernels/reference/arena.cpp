// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reference/families.h"
#include "runtime/kernels/reference/optimizer_steps.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels::reference {

namespace {

void check_finite(const Tensor& grad, std::int64_t base, std::span<const ArenaSegment> segments, const Tensor& flags,
                  const Tensor& sum_of_squares) {
  checks::check_finite(grad, base, segments, flags, sum_of_squares);
  const Values values = load(grad);
  Values found, sums;
  for (const ArenaSegment& segment : segments) {
    double sum = 0;
    bool finite = true;
    for (std::int64_t offset = segment.begin; offset < segment.end; ++offset) {
      const double value = values[static_cast<std::size_t>(offset - base)];
      finite = finite && std::isfinite(value);
      sum += value * value;
    }
    found.push_back(finite ? 0 : 1);
    sums.push_back(sum);
  }
  store(found, flags);
  if (sum_of_squares.defined()) store(sums, sum_of_squares);
}

void rescale(const Tensor& in, const float* factor, float limit, std::int64_t base,
             std::span<const ArenaSegment> segments, const Tensor& out, const Tensor& flags) {
  checks::rescale(in, base, segments, out, flags);
  const double multiplier = factor == nullptr ? 1.0 : static_cast<double>(*factor);
  const double most = limit > 0 ? static_cast<double>(limit) : INFINITY;
  const Values from = load(in);
  Values to = load(out);
  Values found;
  for (const ArenaSegment& segment : segments) {
    bool finite = true;
    for (std::int64_t offset = segment.begin; offset < segment.end; ++offset) {
      const auto at = static_cast<std::size_t>(offset - base);
      to[at] = rounded(std::clamp(from[at] * multiplier, -most, most), out.dtype());
      finite = finite && std::isfinite(to[at]);
    }
    found.push_back(finite ? 0 : 1);
  }
  store(to, out);
  if (flags.defined()) store(found, flags);
}

void mean_step(const Tensor& weights, const MeanRule& rule, const std::int64_t* applied_steps, const float* found_inf,
               const Tensor& mean) {
  checks::mean_step(weights, mean);
  if (*found_inf != 0) return;
  double decay = rule.decay;
  if (rule.warmup > 0) {
    const auto steps = static_cast<double>(*applied_steps);
    decay = std::min(decay, (1 + steps) / (rule.warmup + steps));
  }
  const Values from = load(weights);
  Values to = load(mean);
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = decay * to[i] + (1 - decay) * from[i];
  store(to, mean);
}

}  // namespace

const ArenaSteps kArenaSteps{.check_finite = check_finite,
                             .rescale = rescale,
                             .layer_rates = layer_rates,
                             .element_step = element_step,
                             .lamb_step = lamb_step,
                             .novograd_step = novograd_step,
                             .mean_step = mean_step};

}  // namespace lockstep::kernels::reference
