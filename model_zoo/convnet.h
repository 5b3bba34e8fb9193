// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model_zoo/activation_names.h"
#include "model_zoo/model_input.h"
#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/nn/layers.h"
#include "runtime/nn/module.h"

namespace lockstep::model_zoo {

/// Convolution, batch norm, activation, pooling, dropout.
struct ConvBlockOptions {
  std::int64_t channels = 0;  ///< of the output; has to be given
  std::int64_t kernel = 3;    ///< odd; padding keeps the extent at stride 1
  std::int64_t stride = 1;
  bool batch_norm = true;
  ops::Activation activation = ops::Activation::kRelu;
  std::int64_t max_pool = 0;  ///< window and stride; 0: no pooling
  double dropout = 0;         ///< in [0, 1)

  static constexpr auto fields() {
    return std::tuple(
        option("channels", &ConvBlockOptions::channels, kPositive, Required{"the number of output channels"}),
        option("kernel", &ConvBlockOptions::kernel), option("stride", &ConvBlockOptions::stride, kAtLeastOne),
        option("batch_norm", &ConvBlockOptions::batch_norm), option("activation", &ConvBlockOptions::activation),
        option("max_pool", &ConvBlockOptions::max_pool, kAtLeastOne, Otherwise::kFollows),
        option("dropout", &ConvBlockOptions::dropout, kFraction));
  }
  bool operator==(const ConvBlockOptions&) const = default;
};

/// The step that turns the last block's image into a vector.
enum class HeadPool { kFlatten, kGlobalAverage };

struct ConvnetOptions {
  std::vector<ConvBlockOptions> blocks = {};  ///< at least one
  double dropout = 0;                         ///< before the classifier; in [0, 1)
  std::vector<std::int64_t> hidden = {};      ///< widths of linear layers before the classifier
  HeadPool head_pool = HeadPool::kFlatten;
  double batch_norm_momentum = 0.1;  ///< of nn::BatchNormOptions
  double batch_norm_epsilon = 1e-5;

  static constexpr std::string_view kKind = "convnet";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(
        option("block", &ConvnetOptions::blocks, Required{"at least one convolution, block { channels: 32 }"}),
        option("dropout", &ConvnetOptions::dropout, kFraction), option("hidden", &ConvnetOptions::hidden, kAtLeastOne),
        option("head_pool", &ConvnetOptions::head_pool),
        option("batch_norm_momentum", &ConvnetOptions::batch_norm_momentum, kZeroToOne),
        option("batch_norm_epsilon", &ConvnetOptions::batch_norm_epsilon, kPositive));
  }
  bool operator==(const ConvnetOptions&) const = default;
};

/// All that is wrong with the options, by the names of the job's fields: "block[1].kernel".
FieldProblems problems_of(const ConvnetOptions& options);

/// Blocks, then a classifier. Samples [H, W, C]. Throws FieldError for options without a meaning, and for blocks that
/// do not fit the samples.
std::unique_ptr<nn::Module> make_model(const ConvnetOptions& options, const ModelInput& input);

}  // namespace lockstep::model_zoo

namespace lockstep {

template <>
struct EnumNames<model_zoo::HeadPool> {
  static constexpr std::array kNames{
      std::pair{model_zoo::HeadPool::kFlatten, std::string_view("FLATTEN")},
      std::pair{model_zoo::HeadPool::kGlobalAverage, std::string_view("GLOBAL_AVERAGE")}};
};

}  // namespace lockstep
