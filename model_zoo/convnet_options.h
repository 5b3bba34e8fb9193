// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/field_checks.h"
#include "runtime/nn/layers.h"

namespace lockstep::model_zoo {

/// Convolution, batch norm, activation, pooling, dropout.
struct ConvBlockOptions {
  std::int64_t channels = 0;  ///< of the output; has to be given
  std::int64_t kernel = 3;    ///< odd; padding keeps the extent at stride 1
  std::int64_t stride = 1;
  bool batch_norm = true;
  kernels::Activation activation = kernels::Activation::kRelu;
  std::int64_t max_pool = 0;  ///< window and stride; 0: no pooling
  double dropout = 0;         ///< in [0, 1)

  bool operator==(const ConvBlockOptions&) const = default;
};

/// What turns the last block's image into a vector.
enum class HeadPool { kFlatten, kGlobalAverage };

struct ConvnetOptions {
  std::vector<ConvBlockOptions> blocks = {};  ///< at least one
  double dropout = 0;                         ///< before the classifier; in [0, 1)
  std::vector<std::int64_t> hidden = {};      ///< widths of linear layers before the classifier
  HeadPool head_pool = HeadPool::kFlatten;
  double batch_norm_momentum = 0.1;  ///< of nn::BatchNormOptions
  double batch_norm_epsilon = 1e-5;

  bool operator==(const ConvnetOptions&) const = default;
};

/// All that is wrong with the options, by the names of the job's fields: "block[1].kernel".
FieldProblems problems_of(const ConvnetOptions& options);

}  // namespace lockstep::model_zoo
