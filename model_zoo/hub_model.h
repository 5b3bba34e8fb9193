// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::model_zoo {

class HubConfig;

/// The model of a folder that transformers' save_pretrained() wrote, as a job says it.
struct HubModel {
  std::string kind;                     ///< of a job's model: "llama"
  std::string text;                     ///< of the model's message, a field a line with its meaning: "llama {\n...}"
  std::int64_t context = 0;             ///< tokens of the longest text; 0: of images
  std::int64_t image_size = 0;          ///< extent of the images, which are square; 0: of texts
  std::vector<float> mean = {};         ///< that its images were normalised by, of values in [0, 1]; none: not said
  std::vector<float> std = {};          ///< beside the mean
  std::vector<std::string> notes = {};  ///< a sentence each
};

/// The model of a config.json. Throws UsageError that says what to do for a type of model that is not built and, all at
/// once, for settings that are not.
HubModel hub_model(const HubConfig& config);

/// That of FOLDER/config.json; of images with the mean of preprocessor_config.json. Throws as hub_model() does, and
/// UsageError for a folder without a config.json.
HubModel read_hub_model(const std::filesystem::path& folder);

}  // namespace lockstep::model_zoo
