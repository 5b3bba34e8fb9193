// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "model_zoo/activation_names.h"
#include "model_zoo/model_input.h"
#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/nn/layers.h"
#include "runtime/nn/module.h"

namespace lockstep::model_zoo {

struct MlpOptions {
  std::vector<std::int64_t> hidden = {};  ///< widths of the hidden layers
  ops::Activation activation = ops::Activation::kRelu;
  double dropout = 0;                        ///< after each hidden layer; in [0, 1)
  std::optional<std::int64_t> outputs = {};  ///< default: as many as the data needs
  bool batch_norm = false;                   ///< after each hidden linear layer
  double batch_norm_momentum = 0.1;          ///< of nn::BatchNormOptions
  double batch_norm_epsilon = 1e-5;

  static constexpr std::string_view kKind = "mlp";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("hidden", &MlpOptions::hidden, kAtLeastOne), option("activation", &MlpOptions::activation),
                      option("dropout", &MlpOptions::dropout, kFraction),
                      option("outputs", &MlpOptions::outputs, kAtLeastOne),
                      option("batch_norm", &MlpOptions::batch_norm),
                      option("batch_norm_momentum", &MlpOptions::batch_norm_momentum, kZeroToOne),
                      option("batch_norm_epsilon", &MlpOptions::batch_norm_epsilon, kPositive));
  }
  bool operator==(const MlpOptions&) const = default;
};

/// All that is wrong with the options, by the names of the job's fields.
FieldProblems problems_of(const MlpOptions& options);

/// Linear layers with activations between them, on flattened samples. Each of input.more_inputs holds tokens, which an
/// embedding of min(50, (vocabulary + 1) / 2) numbers appends to them. Throws FieldError for options without a meaning,
/// and for more inputs that are numbers.
std::unique_ptr<nn::Module> make_model(const MlpOptions& options, const ModelInput& input);

}  // namespace lockstep::model_zoo
