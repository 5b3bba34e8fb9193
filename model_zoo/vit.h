// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "model_zoo/model_input.h"
#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/nn/module.h"

namespace lockstep::model_zoo {

/// The defaults are ViT-B/16. (Dosovitskiy et al.: "An Image is Worth 16x16 Words", ICLR 2021, arXiv 2010.11929.)
struct VitOptions {
  std::int64_t patch = 16;  ///< extent of the squares that become a position each; a divisor of the images' extents
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t width = 768;                 ///< a multiple of heads
  std::optional<std::int64_t> hidden = {};  ///< width of a feed-forward layer; default: 4 width
  double dropout = 0;                       ///< of embeddings, feed-forward layers and what blocks add; in [0, 1)
  double attention_dropout = 0;             ///< of the attention's probabilities; in [0, 1)
  double norm_epsilon = 1e-6;
  bool checkpoint_activations = false;  ///< of blocks: nn::checkpoint()

  static constexpr std::string_view kKind = "vit";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(
        option("patch", &VitOptions::patch, kAtLeastOne), option("layers", &VitOptions::layers, kAtLeastOne),
        option("heads", &VitOptions::heads, kAtLeastOne), option("width", &VitOptions::width, kAtLeastOne),
        option("hidden", &VitOptions::hidden, kAtLeastOne), option("dropout", &VitOptions::dropout, kFraction),
        option("attention_dropout", &VitOptions::attention_dropout, kFraction),
        option("norm_epsilon", &VitOptions::norm_epsilon, kPositive),
        option("checkpoint_activations", &VitOptions::checkpoint_activations));
  }
  bool operator==(const VitOptions&) const = default;
};

/// All that is wrong with the options, by the names of the job's fields.
FieldProblems problems_of(const VitOptions& options);

/// The vision transformer, as torchvision has it: squares of an image become positions by one product each, behind a
/// learned class token; learned positions, pre-norm blocks with exact GELU, and a classifier of the class token. It
/// starts as torchvision's does.
///
/// Images [N, H, W, C] -> [N, outputs]. The weights fit images of these extents. Its parameters are class_token
/// [width], patches, position_embedding, block0..., norm and classifier. Throws FieldError for options without a
/// meaning, for samples that are no images or no multiples of the patch, and for data with a label a position.
std::unique_ptr<nn::Module> make_model(const VitOptions& options, const ModelInput& input);

}  // namespace lockstep::model_zoo
