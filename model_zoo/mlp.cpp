// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/mlp.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "model_zoo/blocks.h"
#include "runtime/base/option_checks.h"
#include "runtime/nn/embedding.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/shape.h"

namespace lockstep::model_zoo {

namespace {

void require_enough_outputs(const MlpOptions& options, const ModelInput& input) {
  if (options.outputs.value_or(input.outputs) >= input.outputs) return;
  throw FieldError("model.mlp.outputs",
                   fmt::format("{} are fewer than the data needs: {}", *options.outputs, input.outputs),
                   "Leave outputs out, and the model fits itself to the data.");
}

/// The width of an embedding of so many categories by the rule of thumb of fast.ai's course (2018, lesson 4): half as
/// many, and at most 50.
std::int64_t embedding_width(std::int64_t vocabulary) { return std::min<std::int64_t>(50, (vocabulary + 1) / 2); }

/// Small, so that a category that is rare, or that the training data lack, says little; and not so small that a short
/// training ends before the embeddings have begun to tell categories apart, as with fastai's 0.01.
constexpr double kEmbeddingDeviation = 0.1;

void require_tokens(const std::vector<InputSpec>& more_inputs) {
  for (const InputSpec& input : more_inputs) {
    if (input.vocabulary > 0) continue;
    throw FieldError("model.mlp",
                     fmt::format("takes tokens beside its first input, but data.train has {}", input.str()),
                     "Put all numbers of a sample into its first input, or register a model of your own: "
                     "nn::MultiInputModule.");
  }
}

/// Layers whose input is a sample's numbers and, behind them, an embedding of each token.
class EmbeddedMlp final : public nn::Sequential {
 public:
  explicit EmbeddedMlp(const ModelInput& input)
      : has_numbers_(input.sample_shape.numel() > 0), width_(input.sample_shape.numel()) {
    for (const InputSpec& tokens : input.more_inputs) {
      const std::int64_t width = embedding_width(tokens.vocabulary);
      const std::string name = fmt::format("embedding{}", embeddings_.size());
      embeddings_.push_back(&add_module<nn::Embedding>(name, tokens.vocabulary, width));
      width_ += tokens.shape.numel() * width;
    }
    choose_initializers([](const nn::Parameter&) { return nn::Initializer::normal(kEmbeddingDeviation); });
  }

  /// The numbers of a row that the layers take.
  std::int64_t width() const { return width_; }

  Tensor forward(const Tensor& x) override { return forward_all(std::span<const Tensor>(&x, 1)); }

 protected:
  Tensor forward_all(std::span<const Tensor> inputs) override {
    require_inputs(inputs.size(), embeddings_.size() + 1);
    std::vector<Tensor> parts;
    if (has_numbers_) parts.push_back(ops::flatten(inputs[0]));
    for (std::size_t i = 0; i < embeddings_.size(); ++i) {
      parts.push_back(ops::flatten((*embeddings_[i])(inputs[i + 1])));
    }
    return Sequential::forward(ops::cat(parts, 1));
  }

 private:
  bool has_numbers_;  ///< a table's columns may all be embedded
  std::int64_t width_;
  std::vector<nn::Embedding*> embeddings_;
};

}  // namespace

FieldProblems problems_of(const MlpOptions& options) { return problems_in_fields(options); }

std::unique_ptr<nn::Module> make_model(const MlpOptions& options, const ModelInput& input) {
  require_none(problems_of(options), "model.mlp");
  require_enough_outputs(options, input);
  require_tokens(input.more_inputs);
  std::int64_t width = input.sample_shape.numel();
  std::unique_ptr<nn::Sequential> net;
  if (input.more_inputs.empty()) {
    net = std::make_unique<nn::Sequential>();
    net->add<nn::Flatten>("flatten");
  } else {
    auto embedded = std::make_unique<EmbeddedMlp>(input);
    width = embedded->width();
    net = std::move(embedded);
  }
  for (std::size_t i = 0; i < options.hidden.size(); ++i) {
    const std::string prefix = "hidden" + std::to_string(i) + "_";
    const std::int64_t hidden = options.hidden[i];
    if (options.batch_norm) {
      // It subtracts the mean, a bias before it would be lost.
      net->add<nn::Linear>(prefix + "linear", width, hidden, false);
      add_norm_and_activation(*net, prefix, hidden, batch_norm_options(options), options.activation);
    } else {
      net->add<nn::Linear>(prefix + "linear", width, hidden, true, options.activation);
    }
    if (options.dropout > 0) net->add<nn::Dropout>(prefix + "dropout", options.dropout);
    width = hidden;
  }
  net->add<nn::Linear>("output", width, options.outputs.value_or(input.outputs));
  return net;
}

}  // namespace lockstep::model_zoo
