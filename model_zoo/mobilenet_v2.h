// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "model_zoo/model_input.h"
#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/nn/module.h"

namespace lockstep::model_zoo {

struct MobilenetV2Options {
  double width = 1;                  ///< > 0, <= 64: times the paper's channels, rounded to a multiple of 8
  double dropout = 0.2;              ///< before the classifier; in [0, 1)
  bool small_images = false;         ///< the first two convolutions of stride 2 have stride 1: for 32x32
  double batch_norm_momentum = 0.1;  ///< of nn::BatchNormOptions
  double batch_norm_epsilon = 1e-5;

  static constexpr std::string_view kKind = "mobilenet_v2";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("width", &MobilenetV2Options::width, Bound{"> 0 and <= 64", 0, true, 64, false}),
                      option("dropout", &MobilenetV2Options::dropout, kFraction),
                      option("small_images", &MobilenetV2Options::small_images),
                      option("batch_norm_momentum", &MobilenetV2Options::batch_norm_momentum, kZeroToOne),
                      option("batch_norm_epsilon", &MobilenetV2Options::batch_norm_epsilon, kPositive));
  }
  /// The options that `lockstep init` gives it for images of this shape.
  static std::string init_text(const Shape& image) {
    const bool small = image.rank() == 3 && std::min(image[0], image[1]) < 64;
    return small ? "small_images: true" : "";
  }
  bool operator==(const MobilenetV2Options&) const = default;
};

/// All that is wrong with the options, by the names of the job's fields.
FieldProblems problems_of(const MobilenetV2Options& options);

/// MobileNetV2 (Sandler, Howard, Zhu, Zhmoginov, Chen: arXiv 1801.04381), as torchvision has it, its names and initial
/// values included: blocks that widen their input, convolve each channel by itself, and narrow the result again.
///
/// Images [N, H, W, C] -> [N, outputs]. Throws FieldError for options without a meaning and for samples that are no
/// images.
std::unique_ptr<nn::Module> make_model(const MobilenetV2Options& options, const ModelInput& input);

}  // namespace lockstep::model_zoo
