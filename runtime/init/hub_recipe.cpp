// SPDX-License-Identifier: Apache-2.0
#include "runtime/init/hub_recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <variant>

#include "runtime/base/error.h"
#include "runtime/init/dataset_text.h"

namespace lockstep::init {

namespace {

/// Passes over the data, and rates, that published models are usually fine-tuned with (Devlin et al., 2019, A.3).
constexpr std::int64_t kEpochs = 3;
constexpr const char* kOptimizer = "adamw { lr: 5e-5 weight_decay: 0.01 } clip_norm: 1.0";

/// Gives the samples the extents that the learned positions are of.
void set_size(data::DatasetOptions& options, std::int64_t size) {
  std::visit(
      [size]<class Options>(Options& kind) {
        if constexpr (requires { kind.resize; }) {
          kind.size = size;
          kind.resize = 0;
        }
      },
      options);
}

bool are_bytes(const data::TokensOptions& options) {
  return options.vocab_file.empty() && !options.files.front().ends_with(".bin");
}

std::string init_from_text(const std::filesystem::path& folder, const std::filesystem::path& base,
                           const std::string& choice) {
  const std::string path = path_text(folder, base);
  if (choice.empty()) return fmt::format("init_from {{ path: {} }}   # all its weights fit the model", path);
  const char* const why = choice.starts_with("match") ? "the folder holds tensors that the model has no use for"
                                                      : "these do not fit the data, and start anew";
  return fmt::format("init_from {{\n  path: {}\n  {}   # {}\n}}", path, choice, why);
}

}  // namespace

void fit_data_to_hub_model(const model_zoo::HubModel& model, const std::filesystem::path& folder, FoundData& found) {
  found.notes.insert(found.notes.end(), model.notes.begin(), model.notes.end());
  const auto* const tokens = std::get_if<data::TokensOptions>(&found.options.train);
  if (tokens != nullptr && are_bytes(*tokens)) {
    found.notes.push_back(
        fmt::format("a token is a byte here: {} holds no vocab.json and merges.txt, and its weights know other tokens",
                    folder.string()));
  }
  if (model.image_size == 0) return;
  set_size(found.options.train, model.image_size);
  if (found.options.eval) set_size(*found.options.eval, model.image_size);
}

Recipe hub_recipe(const model_zoo::HubModel& model, const std::filesystem::path& folder, const FoundData& found,
                  const data::Description& data, const std::filesystem::path& base, const std::string& choice) {
  Recipe recipe = recipe_for(found, data, model.kind);
  recipe.model = model.text;
  recipe.optimizer = kOptimizer;
  recipe.epochs = kEpochs;
  recipe.init_from = init_from_text(folder, base, choice);
  const std::size_t channels = data.sample_shape.rank() == 3 ? static_cast<std::size_t>(data.sample_shape.back()) : 0;
  if (!model.mean.empty() && (model.mean.size() == channels || model.mean.size() == 1)) {
    recipe.normalize = fmt::format("mean: [{}] std: [{}]", fmt::join(model.mean, ", "), fmt::join(model.std, ", "));
  }
  return recipe;
}

}  // namespace lockstep::init
