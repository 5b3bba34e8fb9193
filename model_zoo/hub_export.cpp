// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/hub_export.h"

#include <fmt/format.h>

#include <string_view>

#include "model_zoo/hub_config.h"
#include "model_zoo/hub_rope.h"
#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/nn/state_dict.h"

namespace lockstep::model_zoo {

namespace {

using Json = nlohmann::ordered_json;

const HubFamily* family_of(const ModelOptions& options) {
  if (std::holds_alternative<RegisteredOptions>(options)) return nullptr;
  return find_family(&HubFamily::model, name_of(options));
}

/// The class of transformers whose weights these are.
std::string architecture(const ModelOptions& options, bool hides_tokens) {
  if (std::holds_alternative<GptOptions>(options)) return "GPT2LMHeadModel";
  if (std::holds_alternative<LlamaOptions>(options)) return "LlamaForCausalLM";
  if (std::holds_alternative<VitOptions>(options)) return "ViTForImageClassification";
  return hides_tokens ? "BertForMaskedLM" : "BertForSequenceClassification";
}

/// Sizes that options may leave to the data or to other options, as the tensors have them.
void take_sizes(Json& fields, nn::Module& model) {
  const nn::StateDict tensors = nn::state_dict(model);
  const auto rows = [&tensors](const char* name) {
    const auto found = tensors.find(name);
    return found == tensors.end() ? Json() : Json(found->second.size(0));
  };
  if (fields.contains("vocabulary")) fields["vocabulary"] = rows("token_embedding.weight");
  fields["hidden"] =
      rows(fields.contains("rope_theta") ? "block0.feed_forward.gate.weight" : "block0.feed_forward.hidden.weight");
}

void give_labels(Json& config, const HubFacts& facts) {
  Json names = Json::object(), numbers = Json::object();
  for (std::int64_t i = 0; i < facts.input.outputs; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::string name = at < facts.class_names.size() ? facts.class_names[at] : fmt::format("LABEL_{}", i);
    names[std::to_string(i)] = name;
    numbers[name] = i;
  }
  config["id2label"] = std::move(names);
  config["label2id"] = std::move(numbers);
  config["problem_type"] = facts.input.classes > 0 ? "single_label_classification" : "regression";
}

}  // namespace

void require_hub_model(const ModelOptions& options, const ModelInput& input) {
  if (family_of(options) == nullptr) {
    throw UsageError(fmt::format("transformers has no model that is a {}", name_of(options)),
                     "Name a file of weights, --out weights.safetensors, or the graph, --onnx model.onnx.");
  }
  if (std::holds_alternative<VitOptions>(options) && input.sample_shape[0] != input.sample_shape[1]) {
    throw UsageError(
        "the model is one of images " + input.sample_shape.str() + ", and those of transformers' ViT are square",
        "Name a file of weights, --out weights.safetensors, or the graph, --onnx model.onnx.");
  }
}

std::string hub_config_text(const ModelOptions& options, nn::Module& model, const HubFacts& facts) {
  require_hub_model(options, facts.input);
  const HubFamily& family = *family_of(options);
  const bool hides_tokens = facts.input.classes > 0 && facts.input.target_shape == facts.input.sample_shape;
  Json fields = fields_of(options);
  take_sizes(fields, model);
  Json config{{"architectures", {architecture(options, hides_tokens)}}, {"model_type", family.type}};
  for (const HubSetting& setting : family.settings) {
    if (setting.bearing == Bearing::kWindow) continue;
    const Json value = setting.field.empty() ? parse_ordered_json(setting.values)[0] : field_at(fields, setting.field);
    if (!value.is_null() || setting.bearing == Bearing::kGiven) config[std::string(setting.name)] = value;
  }
  give_rope_settings(config);
  if (std::holds_alternative<VitOptions>(options)) {
    config["image_size"] = facts.input.sample_shape[0];
    config["num_channels"] = facts.input.sample_shape.back();
  }
  // Which tokens begin and end a text, a run does not know: transformers' defaults would end one at any token 2.
  if (facts.input.vocabulary > 0) config["bos_token_id"] = config["eos_token_id"] = nullptr;
  if (std::holds_alternative<VitOptions>(options) || !hides_tokens) give_labels(config, facts);
  config["torch_dtype"] = facts.dtype;
  return config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::model_zoo
