// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <initializer_list>
#include <span>

#include "runtime/nn/module.h"

namespace lockstep::nn {

/// The model's output at the opt level that amp::initialize gave it: under autocast (O1), or with the inputs cast to 16
/// bits and the result back to float32 (O2, O3). A model that was not initialised runs in its own dtype,
/// Module::dtype(): the inputs are cast to it, and a 16-bit result back to float32; within the caller's own Autocast it
/// runs as it is. Integer inputs stay as they are.
Tensor forward(Module& model, const Tensor& input);
/// The same of a MultiInputModule. Throws UsageError for another number of inputs than it takes.
Tensor forward(Module& model, std::span<const Tensor> inputs);
inline Tensor forward(Module& model, std::initializer_list<Tensor> inputs) {
  return forward(model, std::span<const Tensor>(inputs.begin(), inputs.size()));
}

/// The model's output for a forward pass that takes more than its input: `run` gets the input as the opt level asks.
Tensor forward(Module& model, const Tensor& input, const std::function<Tensor(const Tensor& input)>& run);

}  // namespace lockstep::nn
