// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/mlp.h"

#include <fmt/format.h>

#include "model_zoo/blocks.h"
#include "runtime/base/option_checks.h"

namespace lockstep::model_zoo {

namespace {

void require_enough_outputs(const MlpOptions& options, const ModelInput& input) {
  if (options.outputs.value_or(input.outputs) >= input.outputs) return;
  throw FieldError("model.mlp.outputs",
                   fmt::format("{} are fewer than the data needs: {}", *options.outputs, input.outputs),
                   "Leave outputs out, and the model fits itself to the data.");
}

}  // namespace

FieldProblems problems_of(const MlpOptions& options) { return problems_in_fields(options); }

std::unique_ptr<nn::Module> make_model(const MlpOptions& options, const ModelInput& input) {
  require_none(problems_of(options), "model.mlp");
  require_enough_outputs(options, input);
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Flatten>("flatten");
  std::int64_t width = input.sample_shape.numel();
  for (std::size_t i = 0; i < options.hidden.size(); ++i) {
    const std::string prefix = "hidden" + std::to_string(i) + "_";
    const std::int64_t hidden = options.hidden[i];
    if (options.batch_norm) {
      // It subtracts the mean, a bias before it would be lost.
      net->add<nn::Linear>(prefix + "linear", width, hidden, false);
      add_norm_and_activation(*net, prefix, hidden, batch_norm_options(options), options.activation);
    } else {
      net->add<nn::Linear>(prefix + "linear", width, hidden, true, options.activation);
    }
    if (options.dropout > 0) net->add<nn::Dropout>(prefix + "dropout", options.dropout);
    width = hidden;
  }
  net->add<nn::Linear>("output", width, options.outputs.value_or(input.outputs));
  return net;
}

}  // namespace lockstep::model_zoo
