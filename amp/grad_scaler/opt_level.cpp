// SPDX-License-Identifier: Apache-2.0
#include "amp/grad_scaler/opt_level.h"

#include <algorithm>
#include <memory>
#include <unordered_set>

#include "runtime/base/error.h"
#include "runtime/nn/layers.h"

namespace lockstep::amp {

namespace {

/// The parameters of all models, each by its place in the graph. Throws where a model was initialized before, two have
/// one parameter, or one is not float32.
std::unordered_set<const void*> parameters_of(const std::vector<nn::Module*>& models) {
  std::unordered_set<const void*> known;
  for (const nn::Module* model : models) {
    if (model->arena()) throw UsageError("amp::initialize was called on this model before");
    for (const nn::Parameter& parameter : model->parameters()) {
      if (parameter.tensor.dtype() != DType::kFloat32) {
        throw UsageError(
            "amp::initialize was given the model's parameter " + parameter.name + ", " + describe(parameter.tensor) +
                ", and needs it in float32",
            "Give it the model as it was made, whatever the opt level: without half(), bfloat16() or to(); "
            "float_() makes it float32 again.");
      }
      if (known.insert(parameter.tensor.autograd_meta().get()).second) continue;
      throw UsageError("two models given to amp::initialize share parameter " + parameter.name,
                       "Make them parts of one model.");
    }
  }
  return known;
}

/// Freezes the statistics that a group of the optimizers asks for.
void freeze_statistics(nn::Module& model, const std::vector<optim::Optimizer*>& optimizers) {
  model.for_each([&](const std::string&, nn::Module& module) {
    auto* const norm = dynamic_cast<nn::BatchNorm*>(&module);
    if (norm == nullptr || norm->parameters().empty()) return;
    const Tensor weight = norm->parameters().front().tensor;
    const auto asks = [&](const optim::Optimizer* optimizer) { return optimizer->freezes_statistics_of(weight); };
    if (std::ranges::any_of(optimizers, asks)) norm->freeze_statistics();
  });
}

nn::ArenaOptions arena_options(const OptLevelProperties& properties, Device device) {
  nn::ArenaOptions options;
  options.compute_dtype = properties.compute_dtype;
  options.reduced_parameters = properties.reduced_parameters;
  options.autocast = properties.autocast;
  options.output_dtype = properties.output_dtype;
  options.keep_norm_float32 = properties.keep_batch_norm_fp32;
  options.master_weights = properties.master_weights;
  options.device = device;
  return options;
}

}  // namespace

void initialize(const std::vector<nn::Module*>& models, const std::vector<optim::Optimizer*>& optimizers,
                const AmpOptions& options, Device device) {
  const OptLevelProperties properties = properties_of(options);
  const std::unordered_set<const void*> known = parameters_of(models);
  for (const optim::Optimizer* optimizer : optimizers) {
    for (const nn::Parameter& parameter : optimizer->parameters()) {
      if (known.contains(parameter.tensor.autograd_meta().get())) continue;
      throw UsageError("no model given to amp::initialize has the optimizer's parameter " + parameter.name,
                       "Give it every model whose parameters the optimizer has.");
    }
  }
  std::vector<std::shared_ptr<nn::Arena>> arenas;
  for (nn::Module* model : models) {
    freeze_statistics(*model, optimizers);
    arenas.push_back(std::make_shared<nn::Arena>(*model, arena_options(properties, device)));
    model->set_arena(arenas.back());
  }
  for (optim::Optimizer* optimizer : optimizers) optimizer->attach(arenas);
}

void initialize(nn::Module& model, optim::Optimizer& optimizer, const AmpOptions& options, Device device) {
  initialize(std::vector{&model}, {&optimizer}, options, device);
}

}  // namespace lockstep::amp
