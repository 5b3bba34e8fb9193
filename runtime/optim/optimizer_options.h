// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/nn/parameter.h"
#include "runtime/tensor/field_checks.h"

namespace lockstep::optim {

/// What some parameters have of their own. They are named in one of two ways: by `match` or by `parameters`.
struct ParameterGroup {
  std::string match = {};                      ///< a regular expression searched in the parameter's name, "\\.bias$"
  double lr_scale = 1;                         ///< >= 0: factor of the learning rate
  std::optional<double> weight_decay = {};     ///< >= 0; default: the optimizer's, and none for norms and biases
  std::vector<nn::Parameter> parameters = {};  ///< the parameters themselves: model->parameters() of a part of it
  /// >= 0: a learning rate instead of lr_scale. It is kept as the ratio to the optimizer's, so a schedule moves both.
  std::optional<double> lr = {};

  bool operator==(const ParameterGroup&) const = default;
};

/// What every optimizer does beside its rule.
struct OptimizerOptions {
  std::optional<double> clip_norm = {};     ///< > 0: clips by global norm after unscaling; default: does not
  std::optional<double> clip_value = {};    ///< > 0: clips each element after unscaling; default: does not
  std::vector<ParameterGroup> groups = {};  ///< the first one that matches a parameter's name applies

  bool operator==(const OptimizerOptions&) const = default;
};

/// SGD as PyTorch defines it. Norms and biases never decay unless a group says so.
struct SgdOptions {
  double lr = 0;            ///< > 0: has to be given
  double momentum = 0;      ///< >= 0 and < 1
  double weight_decay = 0;  ///< >= 0
  bool nesterov = false;    ///< needs momentum > 0 and dampening 0
  double dampening = 0;     ///< >= 0 and < 1

  bool operator==(const SgdOptions&) const = default;
};

/// Adam; weight decay is added to the gradient. Norms and biases never decay unless a group says so.
struct AdamOptions {
  double lr = 0;            ///< > 0: has to be given
  double beta1 = 0.9;       ///< >= 0 and < 1
  double beta2 = 0.999;     ///< >= 0 and < 1
  double epsilon = 1e-8;    ///< > 0
  double weight_decay = 0;  ///< >= 0

  bool operator==(const AdamOptions&) const = default;
};

/// AdamW; weight decay is decoupled from the gradient. Norms and biases never decay unless a group says so.
struct AdamwOptions {
  double lr = 0;               ///< > 0: has to be given
  double beta1 = 0.9;          ///< >= 0 and < 1
  double beta2 = 0.999;        ///< >= 0 and < 1
  double epsilon = 1e-8;       ///< > 0
  double weight_decay = 0.01;  ///< >= 0

  bool operator==(const AdamwOptions&) const = default;
};

// What an optimizer refuses; empty where the options can be used.
FieldProblems problems_of(const OptimizerOptions& options);
FieldProblems problems_of(const SgdOptions& options);
FieldProblems problems_of(const AdamOptions& options);
FieldProblems problems_of(const AdamwOptions& options);

}  // namespace lockstep::optim
