// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/eval_result.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace lockstep::train {

std::optional<double> value_of(const EvalResult& result, const std::string& name) {
  if (name == "eval.loss") return result.loss;
  for (const Metric& metric : result.metrics) {
    if (name == "eval." + metric.name) return metric.value;
  }
  return std::nullopt;
}

bool is_better_lower(const std::string& name) { return name == "eval.loss" || name == "eval.perplexity"; }

nlohmann::ordered_json to_json(const EvalResult& result) {
  nlohmann::ordered_json json{{"samples", result.samples}, {"loss", result.loss}};
  for (const Metric& metric : result.metrics) json[metric.name] = metric.value;
  if (result.of_mean) json["weights"] = "mean";
  if (result.skipped_samples) json["skipped_samples"] = *result.skipped_samples;
  return json;
}

std::string text_of(const Metric& metric) {
  return metric.is_share ? fmt::format("{:.2f} %", 100.0 * metric.value) : fmt::format("{:.4f}", metric.value);
}

}  // namespace lockstep::train
