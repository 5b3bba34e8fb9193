// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "model_zoo/model_input.h"
#include "model_zoo/vit_options.h"
#include "runtime/nn/module.h"

namespace lockstep::model_zoo {

/// The vision transformer, as torchvision has it: squares of an image become positions by one product each, behind a
/// learned class token; learned positions, pre-norm blocks with exact GELU, and a classifier of the class token. It
/// starts as torchvision's does.
///
/// Images [N, H, W, C] -> [N, outputs]. The weights fit images of these extents. Its parameters are class_token
/// [width], patches, position_embedding, block0..., norm and classifier. Throws FieldError for options without a
/// meaning, for samples that are no images or no multiples of the patch, and for data with a label a position.
std::unique_ptr<nn::Module> make_model(const VitOptions& options, const ModelInput& input);

}  // namespace lockstep::model_zoo
