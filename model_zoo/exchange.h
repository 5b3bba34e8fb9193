// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model_zoo/build.h"
#include "runtime/nn/state_dict.h"

namespace lockstep::model_zoo {

// Weights as PyTorch's own implementation of a model names them and lays them out (pytorch_names.h), for
// load_state_dict(strict=True). Models that it has none of keep their names; there a first linear layer behind a
// flattening of images reads them channels last. Convolutions are [out, in, kernel...] there, and a batch norm's
// running statistics are three tensors.

/// All weights and running statistics of `model`, which build() made of `options`: float32 copies on the CPU. With them
/// what a strict load asks for beyond: a tied head under its own name, zeros for a bias that only PyTorch's has.
nn::StateDict to_pytorch(const ModelOptions& options, nn::Module& model);
/// The same as transformers' save_pretrained() has it: a vit under transformers' names, and tied weights once.
nn::StateDict to_transformers(const ModelOptions& options, nn::Module& model);

/// The reverse: what `theirs` holds of `model`, under the names and in the layouts of nn::state_dict(). A vit may be
/// torchvision's or transformers'. Names may lack
/// the prefix that a file of the model without its head lacks; either of two tied tensors will do. A name that the
/// model has none of stays as it is, so that nn::load_state_dict() names it; buffers that are no weights
/// (num_batches_tracked, GPT-2's masks) and zeros for a bias that the model lacks are left out. Throws UsageError where
/// tensors that are one here are not all there or do not fit each other (mean and variance; q, k and v), and for tied
/// ones that differ.
nn::StateDict from_pytorch(const ModelOptions& options, nn::Module& model, const nn::StateDict& theirs);

}  // namespace lockstep::model_zoo
