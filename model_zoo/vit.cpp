// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/vit.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "model_zoo/blocks.h"
#include "model_zoo/transformer_checks.h"
#include "runtime/base/option_checks.h"
#include "runtime/nn/checkpoint.h"
#include "runtime/nn/feed_forward.h"
#include "runtime/nn/normalization.h"
#include "runtime/nn/positions.h"
#include "runtime/nn/transformer_block.h"
#include "runtime/ops/broadcast.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/shape.h"

namespace lockstep::model_zoo {

namespace {

constexpr const char* kVitPath = "model.vit";

void require_fit(const VitOptions& options, const ModelInput& input) {
  require_images(input, kVitPath);
  if (input.classes > 0 && input.target_shape.rank() > 0) {
    throw FieldError(kVitPath, "needs one label an image, the data has labels " + input.target_shape.str());
  }
  for (int d = 0; d < 2; ++d) {
    if (input.sample_shape[d] % options.patch == 0) continue;
    throw FieldError(
        std::string(kVitPath) + ".patch",
        fmt::format("{} does not divide the extents of the images, {}", options.patch, input.sample_shape.str()),
        "Take another patch, or images of another size.");
  }
}

/// One linear layer alone reads the norm's result.
std::unique_ptr<nn::LayerNorm> make_vit_norm(const VitOptions& options) {
  return std::make_unique<nn::LayerNorm>(Shape{options.width}, nn::NormOptions{.epsilon = options.norm_epsilon},
                                         ops::NormResult::kForProducts);
}

std::unique_ptr<nn::TransformerBlock> make_vit_block(const VitOptions& options) {
  nn::TransformerBlock::Parts parts;
  parts.attention_norm = make_vit_norm(options);
  parts.attention = std::make_unique<nn::MultiHeadAttention>(
      nn::AttentionOptions{.width = options.width, .heads = options.heads, .dropout = options.attention_dropout});
  parts.feed_forward_norm = make_vit_norm(options);
  parts.feed_forward = std::make_unique<nn::FeedForward>(
      options.width, options.hidden.value_or(4 * options.width),
      nn::FeedForwardOptions{.activation = ops::Activation::kGelu, .dropout = options.dropout});
  parts.dropout = options.dropout;
  return std::make_unique<nn::TransformerBlock>(std::move(parts));
}

nn::ConvOptions patch_options(std::int64_t patch) {
  nn::ConvOptions options = conv_options(patch, patch);
  options.geometry.padding = {};
  return options;
}

class Vit : public nn::Module {
 public:
  Vit(const VitOptions& options, const ModelInput& input)
      : width_(options.width), checkpoint_activations_(options.checkpoint_activations) {
    const Shape& image = input.sample_shape;
    const std::int64_t squares = image[0] / options.patch * (image[1] / options.patch);
    class_token_ = add_parameter("class_token", {width_}, nn::ParameterKind::kWeight, nn::Initializer::constant(0));
    patches_ = &add_module<nn::Conv>("patches", image.back(), width_, patch_options(options.patch));
    positions_ = &add_module<nn::LearnedPositions>("position_embedding", squares + 1, width_);
    if (options.dropout > 0) dropout_ = &add_module<nn::Dropout>("dropout", options.dropout);
    for (std::int64_t i = 0; i < options.layers; ++i) {
      std::unique_ptr<nn::TransformerBlock> block = make_vit_block(options);
      blocks_.push_back(block.get());
      adopt("block" + std::to_string(i), std::move(block));
    }
    std::unique_ptr<nn::LayerNorm> norm = make_vit_norm(options);
    norm_ = norm.get();
    adopt("norm", std::move(norm));
    classifier_ = &add_module<nn::Linear>("classifier", width_, input.outputs);
  }

  Tensor forward(const Tensor& images) override {
    const Tensor squares = (*patches_)(images);
    const std::int64_t samples = squares.size(0);
    const Tensor token = ops::expand(class_token_, {samples, 1, width_});
    Tensor x = ops::cat({token, ops::reshape(squares, {samples, squares.size(1) * squares.size(2), width_})}, 1);
    x = (*positions_)(x);
    if (dropout_ != nullptr) x = (*dropout_)(x);
    for (nn::TransformerBlock* const block : blocks_) {
      x = checkpoint_activations_ ? nn::checkpoint(*block, x) : (*block)(x);
    }
    // The norm of a position reads no other one.
    return (*classifier_)((*norm_)(ops::select(x, 1, 0)));
  }

 private:
  std::int64_t width_;
  bool checkpoint_activations_;
  Tensor class_token_;
  nn::Module* patches_ = nullptr;
  nn::Module* positions_ = nullptr;
  nn::Module* dropout_ = nullptr;
  std::vector<nn::TransformerBlock*> blocks_;
  nn::Module* norm_ = nullptr;
  nn::Module* classifier_ = nullptr;
};

/// torchvision's initial values.
nn::Initializer vit_initializer(const nn::Parameter& parameter) {
  const std::string& name = parameter.name;
  const Shape& shape = parameter.tensor.shape();
  if (name.starts_with("classifier.")) return nn::Initializer::constant(0);
  if (name.find(".feed_forward.") != std::string::npos && parameter.kind == nn::ParameterKind::kBias) {
    return nn::Initializer::normal(1e-6);
  }
  if (parameter.kind == nn::ParameterKind::kBias) return nn::Initializer::constant(0);
  if (name == "patches.weight") {
    const std::int64_t fan_in = shape.numel() / shape.front();
    return nn::Initializer::normal(1 / std::sqrt(static_cast<double>(fan_in)));
  }
  const bool xavier = name.find(".feed_forward.") != std::string::npos || name.ends_with(".attention.input.weight");
  if (!xavier) return parameter.initializer;
  return nn::Initializer::uniform(std::sqrt(6 / static_cast<double>(shape.front() + shape.back())));
}

}  // namespace

FieldProblems problems_of(const VitOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  check_heads(checks, options);
  return checks.problems();
}

std::unique_ptr<nn::Module> make_model(const VitOptions& options, const ModelInput& input) {
  require_none(problems_of(options), kVitPath);
  require_fit(options, input);
  auto model = std::make_unique<Vit>(options, input);
  model->choose_initializers(vit_initializer);
  return model;
}

}  // namespace lockstep::model_zoo
