// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/history/evaluations.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "runtime/base/json_text.h"
#include "runtime/train/history/metrics_lines.h"

namespace lockstep::train {

using Json = nlohmann::ordered_json;

double value_in(const Json& evaluation, const std::string& metric) {
  constexpr std::string_view kEval = "eval.";
  const Json& value = field_of(evaluation, metric.starts_with(kEval) ? metric.substr(kEval.size()) : metric);
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::map<std::uint64_t, double> evaluations_of(const std::filesystem::path& run, const std::string& metric) {
  std::map<std::uint64_t, double> values;
  const std::filesystem::path file = run / "metrics.jsonl";
  std::error_code hidden;
  if (!std::filesystem::exists(file, hidden)) return values;
  for_each_line(file, [&](std::string_view text) {
    // Most lines are steps: they are not parsed.
    if (text.find("\"eval\"") == std::string_view::npos) return true;
    const Json line = parse_ordered_json(text);
    if (!line.is_object() || field_of(line, "event") != "eval") return true;
    const Json& step = field_of(line, "step");
    if (step.is_number_unsigned()) values[step.get<std::uint64_t>()] = value_in(line, metric);
    return true;
  });
  return values;
}

}  // namespace lockstep::train
