// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "model_zoo/model_input.h"
#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/nn/module.h"

namespace lockstep::model_zoo {

enum class ResnetStem {
  kImagenet,  ///< 7x7 convolution of stride 2, then 3x3 max pooling of stride 2
  kCifar,     ///< 3x3 convolution of stride 1
};

struct ResnetOptions {
  std::int64_t depth = 0;  ///< 18, 34, 50, 101 or 152; has to be given
  ResnetStem stem = ResnetStem::kImagenet;
  std::int64_t width = 64;           ///< channels of the first stage
  bool zero_init_residual = false;   ///< the last batch norm of a block starts at gamma 0
  double batch_norm_momentum = 0.1;  ///< of nn::BatchNormOptions
  double batch_norm_epsilon = 1e-5;
  bool checkpoint_activations = false;  ///< of residual blocks: nn::checkpoint()

  static constexpr std::string_view kKind = "resnet";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("depth", &ResnetOptions::depth, Required{"one of 18, 34, 50, 101, 152"}),
                      option("stem", &ResnetOptions::stem), option("width", &ResnetOptions::width, kAtLeastOne),
                      option("zero_init_residual", &ResnetOptions::zero_init_residual),
                      option("batch_norm_momentum", &ResnetOptions::batch_norm_momentum, kZeroToOne),
                      option("batch_norm_epsilon", &ResnetOptions::batch_norm_epsilon, kPositive),
                      option("checkpoint_activations", &ResnetOptions::checkpoint_activations));
  }
  /// "resnet50", as the header of a run and PyTorch call it.
  std::string model_name() const { return std::string(kKind) + std::to_string(depth); }
  bool operator==(const ResnetOptions&) const = default;
};

/// All that is wrong with the options, by the names of the job's fields.
FieldProblems problems_of(const ResnetOptions& options);

/// Residual networks (He, Zhang, Ren, Sun: arXiv 1512.03385): basic blocks up to 34 layers; above 34, bottlenecks that
/// stride in their 3x3 convolution. Samples [H, W, C]. Throws FieldError for options without a meaning.
std::unique_ptr<nn::Module> make_model(const ResnetOptions& options, const ModelInput& input);

}  // namespace lockstep::model_zoo

namespace lockstep {

template <>
struct EnumNames<model_zoo::ResnetStem> {
  static constexpr std::array kNames{std::pair{model_zoo::ResnetStem::kImagenet, std::string_view("IMAGENET")},
                                     std::pair{model_zoo::ResnetStem::kCifar, std::string_view("CIFAR")}};
};

}  // namespace lockstep
