// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "model_zoo/model_input.h"
#include "model_zoo/unet3d_options.h"
#include "runtime/nn/module.h"

namespace lockstep::model_zoo {

/// The 3D U-Net (Cicek, Abdulkadir, Lienkamp, Brox, Ronneberger: arXiv 1606.06650) with padded convolutions, so that an
/// answer has the extents of its sample. On the way down, each level convolves and halves the extents. On the way up,
/// each doubles them, concatenates its output of the way down and convolves again.
///
/// Samples [D, H, W, C] -> [D, H, W, classes] for one class per voxel, or the target's shape for numbers: [D, H, W] or
/// [D, H, W, K]. The weights fit volumes of any extents that are multiples of 2^levels. Throws FieldError for options
/// without a meaning, for other extents, and for data without one target per voxel.
std::unique_ptr<nn::Module> make_model(const Unet3dOptions& options, const ModelInput& input);

}  // namespace lockstep::model_zoo
