// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/hub_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "model_zoo/hub_config.h"
#include "model_zoo/hub_rope.h"
#include "runtime/base/error.h"
#include "runtime/base/files/durable_file.h"
#include "runtime/base/json_text.h"

namespace lockstep::model_zoo {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// The angles of rotary positions are kept for every position of the context.
constexpr std::int64_t kMostRotaryContext = 8192;
constexpr std::uint64_t kMostPreprocessorBytes = 1 << 20;

std::string known_types() {
  std::vector<std::string_view> types;
  for (const HubFamily& family : hub_families()) types.push_back(family.type);
  return fmt::format("{}", fmt::join(types, ", "));
}

const HubFamily& family_of(const HubConfig& config) {
  if (config.family() != nullptr) return *config.family();
  if (config.type().empty()) {
    throw UsageError(config.file().string() + " has no model_type",
                     "Name a folder that transformers' save_pretrained() wrote.");
  }
  throw UsageError(fmt::format("{}: models of model_type \"{}\" are not built", config.file().string(), config.type()),
                   fmt::format("Lockstep has those of {}.", known_types()));
}

void require_built(const HubConfig& config, const HubFamily& family) {
  std::vector<std::string> problems;
  for (const HubSetting& setting : family.settings) {
    if (!setting.field.empty() || setting.bearing == Bearing::kTraining) continue;
    const std::string problem = problem_of(setting, config[setting.name]);
    if (!problem.empty()) problems.push_back(problem);
  }
  const std::string rope = problem_of_rope(config[kRopeType]);
  if (!rope.empty()) problems.push_back(rope);
  if (problems.empty()) return;
  throw UsageError(
      fmt::format("{} tells of a model that Lockstep does not compute: {}", config.file().string(),
                  fmt::join(problems, "; ")),
      "With another model of the zoo these weights would compute other numbers than they were trained to.");
}

/// A job's text takes the value as it stands.
void require_value(const HubConfig& config, const HubSetting& setting, const Json& value) {
  if (value.is_number() || value.is_boolean() || setting.name == kRopeType) return;
  throw UsageError(fmt::format("{}: {} is {}, and no number", config.file().string(), setting.name, value.dump()));
}

/// The lines of a message, a field each, with comments in a column.
class Lines {
 public:
  void add(std::string_view field, const Json& value, const std::string& comment) {
    const std::size_t dot = field.find('.');
    const std::string_view group = dot == std::string_view::npos ? std::string_view() : field.substr(0, dot);
    if (group != group_) close();
    if (!group.empty() && group_.empty()) rows_.push_back({fmt::format("  {} {{", group), ""});
    group_ = group;
    const std::string indent = group.empty() ? "  " : "    ";
    const std::string_view name = dot == std::string_view::npos ? field : field.substr(dot + 1);
    rows_.push_back({fmt::format("{}{}: {}", indent, name, text_of(value)), comment});
  }
  std::string text(std::string_view kind) {
    close();
    std::size_t column = 0;
    for (const auto& [line, comment] : rows_) column = std::max(column, comment.empty() ? 0 : line.size());
    std::string text = fmt::format("{} {{\n", kind);
    for (const auto& [line, comment] : rows_) {
      text += comment.empty() ? line + "\n" : fmt::format("{:<{}}   # {}\n", line, column, comment);
    }
    return text + "}";
  }

 private:
  /// The names of enumerations stand without quotes.
  static std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }
  void close() {
    if (!group_.empty()) rows_.push_back({"  }", ""});
    group_ = {};
  }

  std::vector<std::pair<std::string, std::string>> rows_;
  std::string_view group_;
};

/// The context that a job gives the model: of learned positions the folder's own, of rotary ones at most what a window
/// of attention and the memory for the angles leave.
std::int64_t context_of(const HubConfig& config, std::int64_t longest, std::vector<std::string>& notes) {
  if (config["rope_theta"].is_null()) return longest;
  std::int64_t context = std::min(longest, kMostRotaryContext);
  if (const Json& window = config["sliding_window"]; window.is_number_integer()) {
    context = std::min(context, window.get<std::int64_t>());
  }
  if (context < longest) {
    notes.push_back(
        fmt::format("the model's context is {} of the {} tokens that the folder allows: raise it for longer "
                    "texts, up to a sliding_window where there is one",
                    context, longest));
  }
  return context;
}

std::vector<float> numbers_in(const Json& list) {
  std::vector<float> numbers;
  for (const Json& each : list) {
    if (!each.is_number()) return {};
    numbers.push_back(each.get<float>());
  }
  return numbers;
}

std::int64_t image_size_of(const HubConfig& config) {
  const Json& size = config["image_size"];
  const Json& side = size.is_array() && size.size() == 2 && size[0] == size[1] ? size[0] : size;
  if (side.is_number_integer()) return side.get<std::int64_t>();
  throw UsageError(
      fmt::format("{}: image_size is {}, and jobs have square images", config.file().string(), size.dump()));
}

void read_preprocessor(const fs::path& folder, HubModel& model) {
  const fs::path file = folder / "preprocessor_config.json";
  if (!fs::is_regular_file(file)) {
    model.notes.push_back(
        "images are normalised as is measured here: the folder has no preprocessor_config.json, "
        "which says how its weights saw them");
    return;
  }
  const Json preprocessor = parse_ordered_json(read_file(file.string(), kMostPreprocessorBytes));
  if (field_of(preprocessor, "do_normalize") == false) return;
  model.mean = numbers_in(field_of(preprocessor, "image_mean"));
  model.std = numbers_in(field_of(preprocessor, "image_std"));
  if (model.mean.size() != model.std.size()) model.mean.clear(), model.std.clear();
}

}  // namespace

HubModel hub_model(const HubConfig& config) {
  const HubFamily& family = family_of(config);
  require_built(config, family);
  HubModel model{.kind = std::string(family.model), .text = {}};
  Lines lines;
  std::set<std::string_view> given;
  for (const HubSetting& setting : family.settings) {
    Json value = config[setting.name];
    if (setting.bearing == Bearing::kTraining && value.is_number() && setting.field.empty() && value != 0) {
      model.notes.push_back(problem_of(setting, value));
    }
    if (setting.field.empty() || setting.bearing == Bearing::kWindow || value.is_null()) continue;
    if (!given.insert(setting.field).second) continue;
    if (setting.field == "context" && value.is_number_integer()) {
      value = model.context = context_of(config, value.get<std::int64_t>(), model.notes);
    }
    if (setting.field == "patch" && value.is_array() && !value.empty()) value = value[0];
    require_value(config, setting, value);
    lines.add(setting.field, value, fmt::format("{}: {}", setting.name, setting.words));
  }
  model.text = lines.text(model.kind);
  if (model.kind == "vit") model.image_size = image_size_of(config);
  return model;
}

HubModel read_hub_model(const fs::path& folder) {
  const fs::path file = folder / "config.json";
  if (!fs::is_regular_file(file)) {
    throw UsageError(
        folder.string() + " holds no config.json",
        "Name a folder that transformers' save_pretrained() wrote, or that a hub's repository is a copy of.");
  }
  HubModel model = hub_model(HubConfig(file));
  if (model.image_size > 0) read_preprocessor(folder, model);
  return model;
}

}  // namespace lockstep::model_zoo
