// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model_zoo/build.h"
#include "runtime/nn/state_dict.h"

namespace lockstep::model_zoo {

// Weights as PyTorch's own implementation of a model names them and lays them out, for load_state_dict(strict=True):
// torchvision's of a resnet. Models that it has none of keep their names: mlp, convnet; there a first linear layer
// behind a flattening of images reads them channels last. Convolutions are [out, in, kernel...] there, and a batch
// norm's running statistics are three tensors.

/// All weights and running statistics of `model`, which build() made of `options`: float32 copies on the CPU.
nn::StateDict to_pytorch(const ModelOptions& options, nn::Module& model);

/// The reverse: what `theirs` holds of `model`, under the names and in the layouts of nn::state_dict(). A name that the
/// model has none of stays as it is, so that nn::load_state_dict() names it; num_batches_tracked is left out. Throws
/// UsageError for a batch norm with a mean and no variance or the reverse.
nn::StateDict from_pytorch(const ModelOptions& options, nn::Module& model, const nn::StateDict& theirs);

}  // namespace lockstep::model_zoo
