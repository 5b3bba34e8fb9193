// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/base/field_checks.h"
#include "runtime/nn/layers.h"

namespace lockstep::model_zoo {

struct MlpOptions {
  std::vector<std::int64_t> hidden = {};  ///< widths of the hidden layers
  kernels::Activation activation = kernels::Activation::kRelu;
  double dropout = 0;                        ///< after each hidden layer; in [0, 1)
  std::optional<std::int64_t> outputs = {};  ///< default: as many as the data needs
  bool batch_norm = false;                   ///< after each hidden linear layer
  double batch_norm_momentum = 0.1;          ///< of nn::BatchNormOptions
  double batch_norm_epsilon = 1e-5;

  bool operator==(const MlpOptions&) const = default;
};

/// All that is wrong with the options, by the names of the job's fields.
FieldProblems problems_of(const MlpOptions& options);

}  // namespace lockstep::model_zoo
