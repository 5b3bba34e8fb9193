// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/base/field_checks.h"
#include "runtime/nn/layers.h"

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
  kernels::Activation activation = kernels::Activation::kRelu;
  double batch_norm_momentum = 0.1;  ///< of nn::BatchNormOptions
  double batch_norm_epsilon = 1e-5;
  bool checkpoint_activations = false;  ///< of levels: nn::checkpoint()

  bool operator==(const Unet3dOptions&) const = default;
};

/// All that is wrong with the options, by the names of the job's fields.
FieldProblems problems_of(const Unet3dOptions& options);

}  // namespace lockstep::model_zoo
