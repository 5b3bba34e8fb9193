// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "model_zoo/activation_names.h"
#include "model_zoo/model_input.h"
#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/nn/layers.h"
#include "runtime/nn/module.h"

namespace lockstep::model_zoo {

/// How extents double on the way up.
enum class Unet3dUp {
  kTransposed,  ///< 2x2x2 transposed convolution of stride 2
  kTrilinear,   ///< 1x1x1 convolution, then trilinear interpolation
};

enum class Unet3dNorm { kBatch, kInstance, kGroup };

struct Unet3dOptions {
  std::int64_t levels = 4;        ///< halvings of the extents
  std::int64_t channels = 32;     ///< of the first level; each halving doubles them
  std::int64_t convolutions = 2;  ///< on each level, on the way down and on the way up
  Unet3dUp up = Unet3dUp::kTransposed;
  Unet3dNorm norm = Unet3dNorm::kBatch;  ///< behind each convolution
  std::int64_t groups = 8;               ///< of a group norm, a divisor of `channels`
  ops::Activation activation = ops::Activation::kRelu;
  double batch_norm_momentum = 0.1;  ///< of nn::BatchNormOptions
  double batch_norm_epsilon = 1e-5;
  bool checkpoint_activations = false;  ///< of levels: nn::checkpoint()

  /// Extents and channels are powers of two of it, which an int64 has to hold.
  static constexpr Bound kLevels{"in [1, 16]", 1, false, 16, false};
  static constexpr std::string_view kKind = "unet3d";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(
        option("levels", &Unet3dOptions::levels, kLevels), option("channels", &Unet3dOptions::channels, kAtLeastOne),
        option("convolutions", &Unet3dOptions::convolutions, kAtLeastOne), option("up", &Unet3dOptions::up),
        option("norm", &Unet3dOptions::norm), option("groups", &Unet3dOptions::groups, kAtLeastOne),
        option("activation", &Unet3dOptions::activation),
        option("batch_norm_momentum", &Unet3dOptions::batch_norm_momentum, kZeroToOne),
        option("batch_norm_epsilon", &Unet3dOptions::batch_norm_epsilon, kPositive),
        option("checkpoint_activations", &Unet3dOptions::checkpoint_activations));
  }
  bool operator==(const Unet3dOptions&) const = default;
};

/// All that is wrong with the options, by the names of the job's fields.
FieldProblems problems_of(const Unet3dOptions& options);

/// The 3D U-Net (Cicek, Abdulkadir, Lienkamp, Brox, Ronneberger: arXiv 1606.06650) with padded convolutions, so that an
/// answer has the extents of its sample. On the way down, each level convolves and halves the extents. On the way up,
/// each doubles them, concatenates its output of the way down and convolves again.
///
/// Samples [D, H, W, C] -> [D, H, W, classes] for one class per voxel, or the target's shape for numbers: [D, H, W] or
/// [D, H, W, K]. The weights fit volumes of any extents that are multiples of 2^levels. Throws FieldError for options
/// without a meaning, for other extents, and for data without one target per voxel.
std::unique_ptr<nn::Module> make_model(const Unet3dOptions& options, const ModelInput& input);

}  // namespace lockstep::model_zoo

namespace lockstep {

template <>
struct EnumNames<model_zoo::Unet3dUp> {
  static constexpr std::array kNames{std::pair{model_zoo::Unet3dUp::kTransposed, std::string_view("TRANSPOSED")},
                                     std::pair{model_zoo::Unet3dUp::kTrilinear, std::string_view("TRILINEAR")}};
};

}  // namespace lockstep

namespace lockstep {

template <>
struct EnumNames<model_zoo::Unet3dNorm> {
  static constexpr std::array kNames{std::pair{model_zoo::Unet3dNorm::kBatch, std::string_view("BATCH")},
                                     std::pair{model_zoo::Unet3dNorm::kInstance, std::string_view("INSTANCE")},
                                     std::pair{model_zoo::Unet3dNorm::kGroup, std::string_view("GROUP")}};
};

}  // namespace lockstep
