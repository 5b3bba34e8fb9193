// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/eval_result.h"

#include <fmt/format.h>

#include <cmath>

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

bool is_better_lower(const std::string& name) { return name == "eval.loss" || name == "eval.perplexity"; }

std::string text_of(const Metric& metric) {
  return metric.is_share ? fmt::format("{:.2f} %", 100.0 * metric.value) : fmt::format("{:.4f}", metric.value);
}

}  // namespace lockstep::train
