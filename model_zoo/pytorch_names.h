// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model_zoo/build.h"

namespace lockstep::model_zoo {

/// What PyTorch's implementation of the model calls one of its modules: "layer2.0.bn1" for "stage1_block0.norm0" of a
/// resnet. The same name for a model that PyTorch has no implementation of.
std::string pytorch_module(const ModelOptions& options, const std::string& module);

}  // namespace lockstep::model_zoo
