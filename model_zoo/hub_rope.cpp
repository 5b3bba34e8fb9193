// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/hub_rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"

namespace lockstep::model_zoo {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kTypes{std::pair{std::string_view("llama3"), std::string_view("ROPE_LLAMA3")},
                            std::pair{std::string_view("linear"), std::string_view("ROPE_LINEAR")}};
constexpr std::string_view kPrefix = "rope_scaling.";
constexpr std::array kFactors{std::string_view("factor"), std::string_view("low_freq_factor"),
                              std::string_view("high_freq_factor"),
                              std::string_view("original_max_position_embeddings")};
/// Behind these, the others are llama3's.
constexpr std::size_t kOfEveryType = 1;

std::string setting(std::string_view name) { return std::string(kPrefix) + std::string(name); }

}  // namespace

void take_rope_settings(Json& config) {
  const Json now = field_of(config, "rope_parameters");
  const Json rope = now.is_object() ? now : field_of(config, "rope_scaling");
  const Json& today = field_of(rope, "rope_type");
  Json type = today.is_string() ? today : field_of(rope, "type");
  config.erase("rope_parameters");
  config.erase("rope_scaling");
  if (const Json& theta = field_of(rope, "rope_theta"); theta.is_number()) config["rope_theta"] = theta;
  config[setting("partial_rotary_factor")] = field_of(rope, "partial_rotary_factor");
  if (!type.is_string() || type == "default") return;
  std::size_t used = kOfEveryType;
  for (const auto& [theirs, ours] : kTypes) {
    if (type != theirs) continue;
    if (theirs == "llama3") used = kFactors.size();
    type = std::string(ours);
    break;
  }
  config[setting("rope_type")] = type;
  for (std::size_t i = 0; i < used; ++i) {
    const Json& given = field_of(rope, kFactors[i]);
    // transformers take the model's own context for that of the first training.
    const bool follows = given.is_null() && kFactors[i] == "original_max_position_embeddings";
    const Json& value = follows ? field_of(config, "max_position_embeddings") : given;
    if (!value.is_number()) {
      throw UsageError(
          fmt::format("config.json: rope_scaling of type {} has no number \"{}\"", rope_type_text(type), kFactors[i]));
    }
    config[setting(kFactors[i])] = Json(value);
  }
}

std::string problem_of_rope(const Json& type) {
  const auto is_known = [&type](const auto& known) { return type == known.second; };
  if (type.is_null() || std::ranges::any_of(kTypes, is_known)) return {};
  return fmt::format("rope_scaling is of type {}, which is not built: llama3 and linear are", type.dump());
}

std::string rope_type_text(const Json& type) {
  for (const auto& [theirs, ours] : kTypes) {
    if (type == ours) return std::string(theirs);
  }
  return type.is_null() ? "default" : type.dump();
}

void give_rope_settings(Json& config) {
  Json scaling;
  for (const auto& [theirs, ours] : kTypes) {
    if (field_of(config, setting("rope_type")) == ours) scaling["rope_type"] = std::string(theirs);
  }
  for (const std::string_view factor : kFactors) {
    const Json& value = field_of(config, setting(factor));
    if (!scaling.is_null() && !value.is_null()) scaling[std::string(factor)] = value;
  }
  const Json all = std::exchange(config, Json::object());
  for (const auto& [name, value] : all.items()) {
    if (!name.starts_with(kPrefix)) config[name] = value;
  }
  if (config.contains("rope_theta")) config["rope_scaling"] = scaling;
}

void drop_unused_rope_fields(Json& fields) {
  Json& scaling = fields["rope_scaling"];
  if (field_of(scaling, "type") != "ROPE_LINEAR") return;
  const Json factor = scaling["factor"];
  scaling = {{"type", "ROPE_LINEAR"}, {"factor", factor}};
}

}  // namespace lockstep::model_zoo
