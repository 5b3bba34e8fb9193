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
enum class UnetUp {
  kTransposed,  ///< transposed convolution of extent 2 and stride 2
  kTrilinear,   ///< convolution of extent 1, then trilinear interpolation; of volumes
  kBilinear,    ///< convolution of extent 1, then bilinear interpolation; of images
};

enum class UnetNorm { kBatch, kInstance, kGroup };

/// Of a U-Net for images (rank 2) or volumes (rank 3).
template <int kSpatialRank>
struct UnetOptions {
  std::int64_t levels = 4;        ///< halvings of the extents
  std::int64_t channels = 32;     ///< of the first level; each halving doubles them
  std::int64_t convolutions = 2;  ///< on each level, on the way down and on the way up
  UnetUp up = UnetUp::kTransposed;
  UnetNorm norm = UnetNorm::kBatch;  ///< behind each convolution
  std::int64_t groups = 8;           ///< of a group norm, a divisor of `channels`
  ops::Activation activation = ops::Activation::kRelu;
  double batch_norm_momentum = 0.1;  ///< of nn::BatchNormOptions
  double batch_norm_epsilon = 1e-5;
  bool checkpoint_activations = false;  ///< of levels: nn::checkpoint()

  /// Extents and channels are powers of two of it, which an int64 has to hold.
  static constexpr Bound kLevels{"in [1, 16]", 1, false, 16, false};
  static constexpr std::string_view kKind = kSpatialRank == 2 ? "unet2d" : "unet3d";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("levels", &UnetOptions::levels, kLevels),
                      option("channels", &UnetOptions::channels, kAtLeastOne),
                      option("convolutions", &UnetOptions::convolutions, kAtLeastOne), option("up", &UnetOptions::up),
                      option("norm", &UnetOptions::norm), option("groups", &UnetOptions::groups, kAtLeastOne),
                      option("activation", &UnetOptions::activation),
                      option("batch_norm_momentum", &UnetOptions::batch_norm_momentum, kZeroToOne),
                      option("batch_norm_epsilon", &UnetOptions::batch_norm_epsilon, kPositive),
                      option("checkpoint_activations", &UnetOptions::checkpoint_activations));
  }
  bool operator==(const UnetOptions&) const = default;
};
using Unet2dOptions = UnetOptions<2>;
using Unet3dOptions = UnetOptions<3>;

/// All that is wrong with the options, by the names of the job's fields.
FieldProblems problems_of(const Unet2dOptions& options);
FieldProblems problems_of(const Unet3dOptions& options);

/// The U-Net (Ronneberger, Fischer, Brox: arXiv 1505.04597) of images, and that of volumes (Cicek, Abdulkadir,
/// Lienkamp, Brox, Ronneberger: arXiv 1606.06650), with padded convolutions, so that an answer has the extents of its
/// sample. On the way down, each level convolves and halves the extents. On the way up, each doubles them, concatenates
/// its output of the way down and convolves again.
///
/// Samples [H, W, C] or [D, H, W, C] -> [..., classes] for one class a pixel or voxel, or the target's shape for
/// numbers: [H, W] or [H, W, K], [D, H, W] or [D, H, W, K]. The weights fit samples of any extents that are multiples
/// of 2^levels. Throws FieldError for options without a meaning, for other extents, and for data without one target a
/// pixel or voxel.
std::unique_ptr<nn::Module> make_model(const Unet2dOptions& options, const ModelInput& input);
std::unique_ptr<nn::Module> make_model(const Unet3dOptions& options, const ModelInput& input);

}  // namespace lockstep::model_zoo

namespace lockstep {

template <>
struct EnumNames<model_zoo::UnetUp> {
  static constexpr std::array kNames{std::pair{model_zoo::UnetUp::kTransposed, std::string_view("TRANSPOSED")},
                                     std::pair{model_zoo::UnetUp::kTrilinear, std::string_view("TRILINEAR")},
                                     std::pair{model_zoo::UnetUp::kBilinear, std::string_view("BILINEAR")}};
};

template <>
struct EnumNames<model_zoo::UnetNorm> {
  static constexpr std::array kNames{std::pair{model_zoo::UnetNorm::kBatch, std::string_view("BATCH")},
                                     std::pair{model_zoo::UnetNorm::kInstance, std::string_view("INSTANCE")},
                                     std::pair{model_zoo::UnetNorm::kGroup, std::string_view("GROUP")}};
};

}  // namespace lockstep
