// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "runtime/nn/module.h"

namespace lockstep::nn {

/// block.forward(x) without what its backward needs: the backward pass runs the block again, recorded, and walks that
/// graph. Activations then take the memory of one block at a time, and a step the time of one more forward pass. (Chen
/// et al.: "Training Deep Nets with Sublinear Memory Cost", 2016.) Without grad mode it is block.forward(x) alone.
///
/// The second run is in the autocast state of the first one, draws the same random numbers, and takes the batch norms'
/// statistics from it: running ones are updated once, and those of several ranks are exchanged once. So the gradients
/// are those without it, bit for bit, where nothing but the block reads x. In 16 bits that also asks
/// that x and the result are no activations that a linear layer on the other side multiplies into its gradient
/// (ActivationDerivative), and that no weight outside an arena is read by several blocks: its gradients are then added
/// in float32, otherwise in 16 bits.
///
/// Every tensor that requires a gradient and that the block reads must be x or one of its parameters; otherwise
/// backward() throws UsageError, as it does where one was written since. The block outlives the graph. Its gradients
/// cannot be differentiated again.
Tensor checkpoint(Module& block, const Tensor& x);

/// checkpoint() of `forward`, a forward pass of the block that also reads tensors without a gradient, such as a mask.
Tensor checkpoint(Module& block, const Tensor& x, const std::function<Tensor(const Tensor& x)>& forward);

}  // namespace lockstep::nn
