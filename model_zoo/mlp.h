// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "model_zoo/model_input.h"
#include "runtime/nn/layers.h"

namespace lockstep::model_zoo {

struct MlpOptions {
  std::vector<std::int64_t> hidden;  ///< widths of the hidden layers
  kernels::Activation activation = kernels::Activation::kRelu;
  double dropout = 0;                   ///< after each hidden layer; in [0, 1)
  std::optional<std::int64_t> outputs;  ///< default: as many as the data needs
  bool batch_norm = false;              ///< after each hidden linear layer

  bool operator==(const MlpOptions&) const = default;
};

/// Linear layers with activations between them, on flattened samples. Throws FieldError for options without a meaning.
std::unique_ptr<nn::Module> make_mlp(const MlpOptions& options, const ModelInput& input);

}  // namespace lockstep::model_zoo
