// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <vector>

#include "model_zoo/hub_config.h"
#include "model_zoo/hub_model.h"
#include "runtime/base/error.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

std::vector<std::string> hub_config_seeds() {
  return {
      R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
              "rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
              "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}, "sliding_window": null})",
      R"({"model_type": "mistral", "rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2}})",
      R"({"model_type": "gpt2", "n_head": 12, "n_inner": null, "resid_pdrop": 0.1, "activation_function": "gelu_new"})",
      R"({"model_type": "bert", "pad_token_id": 0, "position_embedding_type": "absolute", "is_decoder": false})",
      R"({"model_type": "vit", "image_size": [32, 32], "patch_size": [4, 4], "qkv_bias": true})"};
}

void read_hub_config(const std::string& path) {
  const model_zoo::HubConfig config(path);
  for (const model_zoo::ModelOptions& options :
       {model_zoo::ModelOptions(model_zoo::GptOptions()), model_zoo::ModelOptions(model_zoo::LlamaOptions()),
        model_zoo::ModelOptions(model_zoo::BertOptions()), model_zoo::ModelOptions(model_zoo::VitOptions())}) {
    model_zoo::differences_of(config, options, true);
  }
  model_zoo::hub_model(config);
}

void fuzz_hub_config(std::string_view bytes) {
  with_file(bytes, [](const std::string& path) {
    try {
      read_hub_config(path);
    } catch (const UsageError&) {
    }
  });
}

}  // namespace

Target hub_config_target() { return {.parse = fuzz_hub_config, .seeds = hub_config_seeds(), .rounds = 10'000}; }

}  // namespace lockstep::fuzz
