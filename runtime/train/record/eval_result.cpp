// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/eval_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "runtime/base/error.h"

namespace lockstep::train {

void require_finite(const EvalResult& result, const std::string& where) {
  if (std::isfinite(result.loss)) return;
  std::string text = fmt::format("the loss of the evaluation{} is {}", where.empty() ? "" : " " + where, result.loss);
  if (const auto& bad = result.bad_batch) {
    text += fmt::format("; the first batch without a finite one has samples {} to {}", bad->begin, bad->end - 1);
  }
  throw NumericsError(text,
                      "Look for values that are not finite in these samples of data.eval, and at the training loss. "
                      "float16 overflows above 65504: amp { dtype: BF16 } and opt_level: O0 do not.");
}

std::optional<double> value_of(const EvalResult& result, const std::string& name) {
  if (name == "eval.loss") return result.loss;
  for (const Metric& metric : result.metrics) {
    if (name == "eval." + metric.name) return metric.value;
  }
  return std::nullopt;
}

bool is_better_lower(const std::string& name) {
  static constexpr std::array<std::string_view, 4> kLower{"eval.loss", "eval.perplexity", "eval.rmse", "eval.mae"};
  return std::ranges::find(kLower, name) != kLower.end();
}

std::string text_of(const Metric& metric) {
  if (metric.is_share) return fmt::format("{:.2f} %", 100.0 * metric.value);
  // Prices and microseconds are numbers of a few digits, too.
  const double size = std::abs(metric.value);
  const bool usual = size == 0 || (size >= 0.1 && size < 1e5) || !std::isfinite(size);
  return usual ? fmt::format("{:.4f}", metric.value) : fmt::format("{:.5g}", metric.value);
}

std::string text_beside_baseline(const EvalResult& result, const Metric& metric) {
  const auto baseline = std::ranges::find(result.baseline, metric.name, &Metric::name);
  if (baseline == result.baseline.end()) return text_of(metric);
  return fmt::format("{} (baseline {})", text_of(metric), text_of(*baseline));
}

}  // namespace lockstep::train
