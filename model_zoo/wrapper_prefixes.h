// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model_zoo/build.h"
#include "runtime/nn/state_dict.h"

namespace lockstep::model_zoo {

/// Tensors of a file without what a wrapper of the model puts before their names.
struct Unwrapped {
  nn::StateDict tensors;
  std::string removed = {};  ///< "model._orig_mod."; empty: nothing
};

/// Leaves out prefixes that Lightning ("model.", "net."), DistributedDataParallel ("module.") and torch.compile
/// ("_orig_mod.", anywhere in a name) put there, also several, where more of the names are then those that `model`,
/// which build() made of `options`, has in PyTorch: of all such choices that with the most, and then the fewest
/// prefixes. A llama's own "model." stays so.
Unwrapped without_wrappers(const ModelOptions& options, nn::Module& model, const nn::StateDict& theirs);

}  // namespace lockstep::model_zoo
