// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "model_zoo/model_input.h"
#include "runtime/nn/module.h"

namespace lockstep::model_zoo {

enum class ResnetStem {
  kImagenet,  ///< 7x7 convolution of stride 2, then 3x3 max pooling of stride 2
  kCifar,     ///< 3x3 convolution of stride 1
};

struct ResnetOptions {
  std::int64_t depth = 0;  ///< 18, 34, 50, 101 or 152; has to be given
  ResnetStem stem = ResnetStem::kImagenet;
  std::int64_t width = 64;          ///< channels of the first stage
  bool zero_init_residual = false;  ///< the last batch norm of a block starts at gamma 0

  bool operator==(const ResnetOptions&) const = default;
};

/// Residual networks (He, Zhang, Ren, Sun: arXiv 1512.03385): basic blocks up to 34 layers, bottlenecks that stride in
/// their 3x3 convolution beyond. Samples [H, W, C]. Throws FieldError for options without a meaning.
std::unique_ptr<nn::Module> make_resnet(const ResnetOptions& options, const ModelInput& input);

}  // namespace lockstep::model_zoo
