// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/pretrained_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/files/durable_file.h"
#include "runtime/base/json_text.h"

namespace lockstep::train {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMostConfigBytes = 1 << 20;

/// Collects where a config.json differs from a job's model.
class Differences {
 public:
  explicit Differences(const Json& config) : config_(config) {}

  /// A number, where the config has one.
  void number(std::string_view name, std::string_view field, double ours) {
    const Json& theirs = field_of(config_, name);
    if (theirs.is_number() && !is_close(theirs.get<double>(), ours)) {
      found_.push_back(fmt::format("{} is {}, the job's {} is {:g}", name, theirs.dump(), field, ours));
    }
  }
  /// Compares a text, where the config has one: it must be one of `ours`.
  void text(std::string_view name, std::initializer_list<std::string_view> ours) {
    const Json& theirs = field_of(config_, name);
    if (!theirs.is_string() || std::ranges::find(ours, theirs.get<std::string>()) != ours.end()) return;
    found_.push_back(fmt::format("{} is {}, the job's model has {}", name, theirs.dump(), fmt::join(ours, " or ")));
  }
  void add(const std::string& difference) { found_.push_back(difference); }
  const Json& config() const { return config_; }
  const std::vector<std::string>& found() const { return found_; }

 private:
  static bool is_close(double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); }

  const Json& config_;
  std::vector<std::string> found_;
};

void compare(Differences& with, const model_zoo::GptOptions& options) {
  with.text("model_type", {"gpt2"});
  with.number("n_head", "heads", static_cast<double>(options.heads));
  with.number("layer_norm_epsilon", "norm_epsilon", options.norm_epsilon);
  with.text("activation_function", {"gelu_new", "gelu_pytorch_tanh"});
  for (const char* const scales : {"scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn"}) {
    if (field_of(with.config(), scales) == true) with.add(fmt::format("{} is true, which gpt does not do", scales));
  }
}

/// transformers 5 has both in "rope_parameters".
void compare_rope(Differences& with, double theta) {
  const Json& now = field_of(with.config(), "rope_parameters");
  const Json& rope = now.is_object() ? now : field_of(with.config(), "rope_scaling");
  const Json& today = field_of(rope, "rope_type");
  const Json& type = today.is_string() ? today : field_of(rope, "type");
  if (type.is_string() && type != "default") {
    with.add(fmt::format("rope_scaling is of type {}, which llama does not have", type.dump()));
  }
  with.number("rope_theta", "rope_theta", theta);
  Differences inner(rope);
  inner.number("rope_theta", "rope_theta", theta);
  for (const std::string& difference : inner.found()) with.add(difference);
}

void compare(Differences& with, const model_zoo::LlamaOptions& options) {
  with.text("model_type", {"llama", "mistral"});
  with.number("num_attention_heads", "heads", static_cast<double>(options.heads));
  with.number("num_key_value_heads", "kv_heads", static_cast<double>(options.kv_heads.value_or(options.heads)));
  with.number("head_dim", "width / heads", static_cast<double>(options.width / options.heads));
  with.number("rms_norm_eps", "norm_epsilon", options.norm_epsilon);
  with.text("hidden_act", {"silu", "swish"});
  compare_rope(with, options.rope_theta);
  const Json& window = field_of(with.config(), "sliding_window");
  if (window.is_number() && window.get<double>() < static_cast<double>(options.context)) {
    with.add(fmt::format("sliding_window is {}, less than the job's context of {}", window.dump(), options.context));
  }
}

void compare(Differences& with, const model_zoo::BertOptions& options) {
  with.text("model_type", {"bert"});
  with.number("num_attention_heads", "heads", static_cast<double>(options.heads));
  with.number("layer_norm_eps", "norm_epsilon", options.norm_epsilon);
  with.text("hidden_act", {"gelu"});
  with.text("position_embedding_type", {"absolute"});
}

/// The others are torchvision's, whose files have no config.json, or our own.
template <class Options>
void compare(Differences&, const Options&) {}

}  // namespace

void require_config_of(const std::filesystem::path& weights, const model_zoo::ModelOptions& options) {
  const std::filesystem::path path = weights.parent_path() / "config.json";
  if (path == weights || !std::filesystem::is_regular_file(path)) return;
  const Json config = parse_ordered_json(read_file(path.string(), kMostConfigBytes));
  Differences differences(config);
  std::visit([&](const auto& kind) { compare(differences, kind); }, options);
  if (differences.found().empty()) return;
  throw FieldError(
      "init_from.path",
      fmt::format("{} tells of another model than the job's: {}", path.string(), fmt::join(differences.found(), "; ")),
      "Set the fields of the job's model so. Where the model does not have it, these weights would compute "
      "other numbers than they were trained to; a copy of them in a folder of its own is not compared.");
}

}  // namespace lockstep::train
