// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/hub_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "model_zoo/hub_rope.h"
#include "model_zoo/option_values.h"
#include "runtime/base/error.h"
#include "runtime/base/files/durable_file.h"
#include "runtime/base/json_text.h"

namespace lockstep::model_zoo {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMostConfigBytes = 1 << 20;

bool are_alike(const Json& a, const Json& b) {
  if (!a.is_number() || !b.is_number()) return a == b;
  const double x = a.get<double>(), y = b.get<double>();
  return std::abs(x - y) <= 1e-6 * std::abs(y);
}

/// Without the quotes of a text.
std::string plain(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

/// Sets the settings that transformers derive from others, as transformers do.
void derive(Json& settings) {
  if (settings.contains("num_key_value_heads") && settings["num_key_value_heads"].is_null()) {
    settings["num_key_value_heads"] = field_of(settings, "num_attention_heads");
  }
  const Json &width = field_of(settings, "hidden_size"), &heads = field_of(settings, "num_attention_heads");
  const Json& channels = field_of(settings, "head_dim");
  const bool all = channels.is_number_integer() && width.is_number_integer() && heads.is_number_integer();
  if (all && heads.get<std::int64_t>() > 0 &&
      channels.get<std::int64_t>() == width.get<std::int64_t>() / heads.get<std::int64_t>()) {
    settings["head_dim"] = nullptr;
  }
}

class Comparison {
 public:
  Comparison(const HubConfig& config, const ModelOptions& options, bool whole)
      : config_(config), fields_(fields_of(options)), whole_(whole) {}

  HubDifferences run(const HubFamily& family) {
    compare_rope();
    for (const HubSetting& setting : family.settings) {
      if (!is_passed_over(setting)) compare(setting, config_[setting.name]);
    }
    return std::move(found_);
  }

 private:
  /// Where the types differ, nothing else of the scaling has a counterpart.
  void compare_rope() {
    const Json &theirs = config_[kRopeType], &ours = field_at(fields_, "rope_scaling.type");
    if (theirs == ours || (theirs.is_null() && config_.family() == nullptr)) return;
    alike_rope_ = false;
    const std::string problem = problem_of_rope(theirs);
    found_.wrong.push_back(problem.empty()
                               ? fmt::format("rope_scaling is of type {}, the job's rope_scaling of type {}",
                                             rope_type_text(theirs), rope_type_text(ours))
                               : problem);
  }

  bool is_passed_over(const HubSetting& setting) const {
    if (setting.bearing == Bearing::kSize || setting.bearing == Bearing::kStart) return true;
    if (setting.bearing == Bearing::kTie && !whole_) return true;
    return setting.field.starts_with("rope_scaling.") && (!alike_rope_ || setting.name == kRopeType);
  }

  void compare(const HubSetting& setting, const Json& theirs) {
    std::vector<std::string>& list = setting.bearing == Bearing::kTraining ? found_.said : found_.wrong;
    if (setting.field.empty()) {
      if (std::string problem = problem_of(setting, theirs); !problem.empty()) list.push_back(std::move(problem));
      return;
    }
    const Json& ours = field_at(fields_, setting.field);
    if (setting.bearing == Bearing::kWindow) return compare_window(setting, theirs, ours);
    // Null: transformers derive the setting, and the shapes of the tensors decide.
    if (theirs.is_null() || are_alike(theirs, ours)) return;
    if (setting.bearing == Bearing::kGiven && ours.is_null()) return;
    if (setting.bearing == Bearing::kTraining && !told_.insert(setting.field).second) return;
    list.push_back(fmt::format("{} is {}, the job's {} is {}", setting.name, plain(theirs), setting.field,
                               ours.is_null() ? "not set" : plain(ours)));
  }

  void compare_window(const HubSetting& setting, const Json& theirs, const Json& ours) {
    if (!theirs.is_number() || !ours.is_number() || theirs.get<double>() >= ours.get<double>()) return;
    found_.wrong.push_back(
        fmt::format("{} is {}, less than the job's {} of {}: attention within a window is not built; "
                    "texts of up to {} tokens have no need of it",
                    setting.name, theirs.dump(), setting.field, ours.dump(), theirs.dump()));
  }

  const HubConfig& config_;
  Json fields_;
  bool whole_;
  bool alike_rope_ = true;
  std::set<std::string_view> told_;  ///< fields whose difference while training is told
  HubDifferences found_;
};

}  // namespace

HubConfig::HubConfig(const std::filesystem::path& file) : file_(file) {
  Json settings = parse_ordered_json(read_file(file.string(), kMostConfigBytes));
  if (!settings.is_object())
    throw UsageError(file.string() + " holds no JSON object, as transformers' config.json does");
  if (const Json& type = field_of(settings, "model_type"); type.is_string()) type_ = type.get<std::string>();
  family_ = find_family(&HubFamily::type, type_);
  take_rope_settings(settings);
  if (family_ != nullptr) {
    settings_ = parse_ordered_json(family_->defaults);
    for (const auto& [name, value] : settings.items()) settings_[name] = value;
  } else {
    settings_ = std::move(settings);
  }
  derive(settings_);
}

const Json& HubConfig::operator[](std::string_view name) const { return field_of(settings_, name); }

std::string problem_of(const HubSetting& setting, const Json& theirs) {
  const Json values = parse_ordered_json(setting.values);
  const auto is_value = [&theirs](const Json& value) { return are_alike(theirs, value); };
  if (theirs.is_null() || std::ranges::any_of(values, is_value)) return {};
  std::vector<std::string> texts;
  for (const Json& value : values) {
    if (!value.is_null()) texts.push_back(plain(value));
  }
  std::string text = fmt::format("{} is {}", setting.name, theirs.is_structured() ? "there" : theirs.dump());
  if (!texts.empty()) text += fmt::format(", the job's model has {}", fmt::join(texts, " or "));
  return setting.words.empty() ? text : fmt::format("{}: {}", text, setting.words);
}

HubDifferences differences_of(const HubConfig& config, const ModelOptions& options, bool whole) {
  if (std::holds_alternative<RegisteredOptions>(options)) return {};
  const std::string model = name_of(options);
  const HubFamily* family = config.family();
  const HubFamily* const own = find_family(&HubFamily::model, model);
  if (own == nullptr) return {};
  if (!config.type().empty() && (family == nullptr || family->model != model)) {
    return {.wrong = {fmt::format("model_type is \"{}\", the job's model is {}", config.type(), model)}, .said = {}};
  }
  return Comparison(config, options, whole).run(family == nullptr ? *own : *family);
}

Json fields_of(const ModelOptions& options) {
  Json fields = std::visit([]<Described Options>(const Options& kind) { return option_values(kind); }, options);
  if (fields.contains("head_width") && fields["head_width"].is_null()) {
    fields["head_width"] = fields["width"].get<std::int64_t>() / fields["heads"].get<std::int64_t>();
  }
  if (fields.contains("kv_heads") && fields["kv_heads"].is_null()) fields["kv_heads"] = fields["heads"];
  if (fields.contains("rope_scaling")) drop_unused_rope_fields(fields);
  return fields;
}

const Json& field_at(const Json& fields, std::string_view path) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) return field_of(fields, path);
  return field_at(field_of(fields, path.substr(0, dot)), path.substr(dot + 1));
}

}  // namespace lockstep::model_zoo
