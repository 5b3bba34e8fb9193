// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/mlp.h"

#include "model_zoo/blocks.h"
#include "runtime/tensor/error.h"

namespace lockstep::model_zoo {

std::unique_ptr<nn::Module> make_mlp(const job::Mlp& config, const ModelInput& input) {
  if (config.has_outputs() && config.outputs() < input.outputs) {
    throw FieldError(
        "model.mlp.outputs",
        std::to_string(config.outputs()) + " are fewer than the data needs: " + std::to_string(input.outputs),
        "Leave outputs out, and the model fits itself to the data.");
  }
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Flatten>("flatten");
  std::int64_t width = input.sample_shape.numel();
  for (int i = 0; i < config.hidden_size(); ++i) {
    const std::string prefix = "hidden" + std::to_string(i) + "_";
    const kernels::Activation activation = activation_of(config.activation());
    if (config.batch_norm()) {
      // It subtracts the mean, a bias before it would be lost.
      net->add<nn::Linear>(prefix + "linear", width, config.hidden(i), false);
      add_norm_and_activation(*net, prefix, config.hidden(i), true, activation);
    } else {
      net->add<nn::Linear>(prefix + "linear", width, config.hidden(i), true, activation);
    }
    if (config.dropout() > 0) net->add<nn::Dropout>(prefix + "dropout", config.dropout());
    width = config.hidden(i);
  }
  net->add<nn::Linear>("output", width, config.has_outputs() ? config.outputs() : input.outputs);
  return net;
}

}  // namespace lockstep::model_zoo
