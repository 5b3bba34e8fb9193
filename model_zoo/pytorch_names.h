// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model_zoo/build.h"
#include "runtime/nn/state_dict.h"

namespace lockstep::model_zoo {

// configs/job.proto says of each model whose weights it has. A model whose modules are named as there, or that PyTorch
// has no implementation of, keeps its names.

/// One of a model's tensors as PyTorch's implementation of it has it.
struct PyTorchTensor {
  std::vector<std::string> names = {};    ///< several: their rows lie one behind the other in ours
  std::vector<std::int64_t> shares = {};  ///< of the rows, for each of several names
  bool transposed = false;                ///< a matrix that is [in, out] there
  int leading = 0;                        ///< extents of 1 that stand before ours there
  std::string bias = {};                  ///< of a weight whose module has a bias there even where ours has none
};

/// The implementation whose names are meant, where a model has two: torchvision and transformers have a vit.
enum class PyTorchSource { kAsDocumented, kTransformers };

/// "layer2.0.bn1.weight" for "stage1_block0.norm0.weight" of a resnet. Of running statistics the module alone.
PyTorchTensor pytorch_tensor(const ModelOptions& options, const std::string& name,
                             PyTorchSource source = PyTorchSource::kAsDocumented);

/// The content of a file of PyTorch's weights beside the model's tensors.
struct PyTorchFile {
  std::string prefix = {};                         ///< of most names; a file of the model without its head lacks it
  std::vector<std::string> buffers = {};           ///< ends of names that are no weights
  std::map<std::string, std::string> copies = {};  ///< a name that holds what another one does: tied weights
  std::map<std::string, std::string> ends = {};    ///< ends of names in older files, and what they are today
};

/// `ours`: the names of the model's tensors, which tell its head.
PyTorchFile pytorch_file(const ModelOptions& options, const nn::StateDict& ours,
                         PyTorchSource source = PyTorchSource::kAsDocumented);

/// The implementation that a file with these names comes from.
PyTorchSource source_of(const ModelOptions& options, const nn::StateDict& theirs);

}  // namespace lockstep::model_zoo
