// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/target_summary.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"

namespace lockstep::data {

namespace {

constexpr std::size_t kMostSummaryText = 64 << 20;

float channel_of(const std::vector<float>& values, std::size_t element, float missing) {
  return values.empty() ? missing : values[element % values.size()];
}

}  // namespace

double TargetScale::undone(double scaled, std::size_t element) const {
  return scaled * static_cast<double>(channel_of(std, element, 1)) + static_cast<double>(channel_of(mean, element, 0));
}

void TargetScale::undo(std::span<float> scaled) const {
  if (is_none()) return;
  for (std::size_t i = 0; i < scaled.size(); ++i) {
    scaled[i] = static_cast<float>(undone(static_cast<double>(scaled[i]), i));
  }
}

std::optional<std::int64_t> most_common(std::span<const std::int64_t> labels) {
  std::map<std::int64_t, std::int64_t> counts;
  for (const std::int64_t label : labels) ++counts[label];
  std::optional<std::int64_t> common;
  for (const auto& [label, count] : counts) {
    if (!common || count > counts[*common]) common = label;
  }
  return common;
}

std::string json_text(const TargetSummary& summary) {
  nlohmann::json json{{"mean", summary.mean},
                      {"common_class", nullptr},
                      {"scale", {{"mean", summary.scale.mean}, {"std", summary.scale.std}}}};
  if (summary.common_class) json["common_class"] = *summary.common_class;
  return json.dump();
}

TargetSummary target_summary_in(std::string_view text, const std::string& what) {
  const nlohmann::json json =
      text.size() <= kMostSummaryText ? parse_json(text) : nlohmann::json(nlohmann::json::value_t::discarded);
  const auto require = [&what](bool holds, std::string_view why) {
    if (!holds) throw StorageError(fmt::format("{}: the summary of targets is damaged: {}", what, why));
  };
  const auto numbers = [&require](const nlohmann::json& object, const char* name, auto& values) {
    const auto list = object.find(name);
    require(list != object.end() && list->is_array(), fmt::format("\"{}\" must be a list of numbers", name));
    for (const nlohmann::json& value : *list) {
      require(value.is_number(), fmt::format("\"{}\" must be a list of numbers", name));
      values.push_back(value.get<typename std::remove_cvref_t<decltype(values)>::value_type>());
      require(std::isfinite(values.back()), fmt::format("\"{}\" must be finite", name));
    }
  };
  require(json.is_object() && json.contains("scale") && json["scale"].is_object(), "it has no \"scale\"");
  TargetSummary summary;
  numbers(json, "mean", summary.mean);
  numbers(json["scale"], "mean", summary.scale.mean);
  numbers(json["scale"], "std", summary.scale.std);
  for (const float std : summary.scale.std) require(std > 0, "\"std\" must be > 0");
  const auto common = json.find("common_class");
  if (common == json.end() || common->is_null()) return summary;
  require(common->is_number_integer() && *common >= 0, "\"common_class\" must be a whole number >= 0");
  summary.common_class = common->get<std::int64_t>();
  return summary;
}

}  // namespace lockstep::data
