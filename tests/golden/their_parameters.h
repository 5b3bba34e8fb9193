// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model_zoo/exchange.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep::kernels {

/// Tensors by the names that PyTorch's implementation of a model has for them.
inline nn::StateDict stored_tensors(const json& stored, DType dtype) {
  nn::StateDict tensors;
  for (const auto& [name, tensor] : stored.items()) tensors[name] = tensor_in(tensor, dtype);
  return tensors;
}

/// Gives the model their weights, all of them, and expects them back.
inline void take_parameters(const model_zoo::ModelOptions& options, nn::Module& model, const json& stored) {
  const nn::StateDict theirs = stored_tensors(stored, model.dtype());
  nn::load_state_dict(model, model_zoo::from_pytorch(options, model, theirs));
  const nn::StateDict back = model_zoo::to_pytorch(options, model);
  for (const auto& [name, tensor] : theirs) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(back.contains(name));
    testing::expect_close(back.at(name), tensor, {1e-6, 1e-6});
  }
  // Beyond the parameters a strict load there asks for tied ones under both names.
  for (const auto& [name, tensor] : back) {
    const bool is_tied = name == "lm_head.weight" || name.starts_with("cls.predictions.decoder.");
    EXPECT_TRUE(theirs.contains(name) || is_tied) << name;
  }
}

inline void expect_gradients(const model_zoo::ModelOptions& options, nn::Module& model, const json& stored,
                             const testing::Bounds& bounds) {
  const nn::StateDict gradients = model_zoo::from_pytorch(options, model, stored_tensors(stored, DType::kFloat64));
  for (const nn::Parameter& parameter : model.parameters()) {
    SCOPED_TRACE(parameter.name);
    testing::expect_close(parameter.tensor.grad(), gradients.at(parameter.name), bounds);
  }
}

}  // namespace lockstep::kernels
