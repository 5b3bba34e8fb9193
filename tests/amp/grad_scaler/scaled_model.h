// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "amp/grad_scaler/grad_scaler.h"
#include "tests/runtime/optim/small_model.h"

namespace lockstep::amp::testing {

using kernels::testing::values_of;
using lockstep::devices::device;
using optim::testing::state_of;
using optim::testing::with_sgd;

/// A scaler of a lone process on device().
inline GradScaler scaler_with(const GradScalerOptions& options = {}) {
  return GradScaler(comm::make_self_communicator(device()), options);
}

/// A model whose gradients are scaled, finite or not.
class ScaledModel : public optim::testing::SmallModel {
 public:
  explicit ScaledModel(const optim::testing::MakeOptimizer& make = with_sgd({.lr = 0.1, .momentum = 0.9}))
      : SmallModel(make) {}

  /// One scaled backward pass, added to the gradients that are there.
  void backward(GradScaler& scaler, bool finite = true) {
    const float first = finite ? 1.0f : std::numeric_limits<float>::infinity();
    const Tensor x = kernels::testing::random_tensor({6, 5}, DType::kFloat32, 1);
    x.mutable_as<float>()[0] = first;
    scaler.scale(ops::mean(net.forward(x.to(device())))).backward();
  }

  /// zero_grad, backward, step and update.
  Verdict train(GradScaler& scaler, bool finite = true) {
    optimizer->zero_grad();
    backward(scaler, finite);
    const Verdict verdict = *scaler.step(*optimizer);
    scaler.update();
    // On a GPU that is the loop's, whenever it reads the state.
    if (device() != kCpu) scaler.require_progress(scaler.state().read(), "some parameter", verdict.rank);
    return verdict;
  }
};

}  // namespace lockstep::amp::testing
