// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "model_zoo/build.h"
#include "model_zoo/hub_settings.h"

namespace lockstep::model_zoo {

/// The config.json that transformers' save_pretrained() puts beside a model's weights.
class HubConfig {
 public:
  /// Throws StorageError where the file cannot be read, and UsageError where it holds no JSON object.
  explicit HubConfig(const std::filesystem::path& file);

  const std::filesystem::path& file() const { return file_; }
  /// "model_type"; empty where the file has none.
  const std::string& type() const { return type_; }
  /// The family of its type; null where none is known.
  const HubFamily* family() const { return family_; }
  /// A setting; null where it is null or absent. Of a known type an absent one has transformers' default; what follows
  /// from others there has its value: num_key_value_heads. A head_dim as it follows from others is null.
  const nlohmann::ordered_json& operator[](std::string_view name) const;

 private:
  std::filesystem::path file_;
  std::string type_;
  const HubFamily* family_ = nullptr;
  nlohmann::ordered_json settings_;
};

/// Why a setting cannot be had where the model has it in one way; empty where it can.
std::string problem_of(const HubSetting& setting, const nlohmann::ordered_json& theirs);

/// How a config.json differs from a job's model.
struct HubDifferences {
  std::vector<std::string> wrong;  ///< the weights would compute other numbers
  std::vector<std::string> said;   ///< it counts while training alone: dropout
};

/// Compares all settings of the model's family but those that tensors tell. Models that transformers has none of differ
/// in nothing. `whole`: all tensors of the model are taken from the file.
HubDifferences differences_of(const HubConfig& config, const ModelOptions& options, bool whole);

/// The model's options by their names in a job, as settings are compared with them: with those that follow from others.
nlohmann::ordered_json fields_of(const ModelOptions& options);

/// The field "rope_scaling.factor" of an object of objects; null where there is none.
const nlohmann::ordered_json& field_at(const nlohmann::ordered_json& fields, std::string_view path);

}  // namespace lockstep::model_zoo
