// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/saved_tensors.h"

#include <algorithm>
#include <string_view>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/tensor_match.h"
#include "runtime/tensor/stream.h"

namespace lockstep::step {

namespace {

constexpr std::string_view kModelPrefix = "model/";
constexpr std::string_view kStatisticsPrefix = "statistics/";
constexpr std::string_view kOptimizerPrefix = "optimizer/";
constexpr std::string_view kMeanPrefix = "mean/";

/// "generator/" of a part's name; empty for a part without one.
std::string folder(const std::string& name) { return name.empty() ? name : name + "/"; }

/// Copies all or, where names or shapes differ, none.
void copy_all(const std::map<std::string, Tensor>& targets, const std::map<std::string, Tensor>& found,
              const std::string& path) {
  std::map<std::string, checkpoint::TensorSpec> expected;
  for (const auto& [name, tensor] : targets) expected[name] = {tensor.dtype(), tensor.shape()};
  checkpoint::require_match(expected, found, path);
  for (const auto& [name, tensor] : targets) tensor.copy_from(found.at(name));
}

}  // namespace

std::map<std::string, Tensor> state_tensors(const std::vector<Named<nn::Arena>>& models,
                                            const std::vector<Named<optim::Optimizer>>& optimizers,
                                            const std::vector<Named<optim::WeightMean>>& means) {
  std::map<std::string, Tensor> tensors;
  std::map<const nn::Arena*, std::string> name_of;
  for (const auto& [name, arena] : models) {
    const std::string model = folder(name);
    name_of[&arena] = model;
    for (const nn::Arena::Slot& slot : arena.slots()) {
      tensors["model/" + model + slot.parameter.name] = arena.master(slot);
    }
    for (const auto& [path, statistics] : arena.statistics()) {
      tensors["statistics/" + model + path] = statistics->committed();
    }
  }
  for (const auto& [name, optimizer] : optimizers) {
    const std::string prefix = std::string(kOptimizerPrefix) + folder(name);
    const auto optimizer_state = optimizer.state();
    const auto parameter_state = optimizer.parameter_state();
    std::int64_t at = 0;
    for (const optim::Optimizer::Slot& slot : optimizer.slots()) {
      const std::string parameter = "/" + name_of.at(slot.arena) + slot.parameter().name;
      tensors[prefix + "step" + parameter] = optimizer.parameter_steps().rows(at, at + 1);
      for (const auto& [state, numbers] : parameter_state) {
        tensors[prefix + state + parameter] = numbers.rows(at, at + 1);
      }
      for (const auto& [state, flat] : optimizer_state) {
        tensors[prefix + state + parameter] = flat.rows(slot.begin, slot.end).reshaped(slot.parameter().tensor.shape());
      }
      ++at;
    }
  }
  for (const auto& [name, mean] : means) {
    const std::string prefix = std::string(kMeanPrefix) + folder(name) + name_of.at(&mean.arena());
    for (const nn::Arena::Slot& slot : mean.arena().slots()) tensors[prefix + slot.parameter.name] = mean.of(slot);
  }
  return tensors;
}

std::map<std::string, Tensor> state_tensors(const LoopParts& parts) {
  std::vector<Named<nn::Arena>> models;
  for (const auto& [name, ddp] : parts.models) models.push_back({name, *ddp.model().arena()});
  return state_tensors(models, parts.optimizers, parts.means);
}

std::map<std::string, Tensor> host_copies(const std::map<std::string, Tensor>& tensors) {
  std::map<std::string, Tensor> copies;
  for (const auto& [name, tensor] : tensors) copies[name] = tensor.to(kCpu);
  return copies;
}

void restore_tensors(const LoopParts& parts, const checkpoint::Checkpoint& saved) {
  copy_all(state_tensors(parts), saved.tensors, saved.path);
  for (const auto& [name, ddp] : parts.models) ddp.model().arena()->refresh_copies();
}

bool has_mean(const checkpoint::Checkpoint& saved) {
  return std::ranges::any_of(saved.tensors, [](const auto& entry) { return entry.first.starts_with(kMeanPrefix); });
}

std::map<std::string, Tensor> weights_of(const checkpoint::Checkpoint& saved, Weights which) {
  const bool takes_mean = which == Weights::kMean && has_mean(saved);
  const std::string_view from = takes_mean ? kMeanPrefix : kModelPrefix;
  std::map<std::string, Tensor> weights;
  for (const auto& [name, tensor] : saved.tensors) {
    if (name.starts_with(kStatisticsPrefix)) weights[name] = tensor;
    if (name.starts_with(from)) weights[std::string(kModelPrefix) + name.substr(from.size())] = tensor;
  }
  return weights;
}

void restore_weights(nn::Arena& arena, const checkpoint::Checkpoint& saved, Weights which) {
  copy_all(state_tensors({{"", arena}}, {}), weights_of(saved, which), saved.path);
  arena.refresh_copies();
}

void restore_model(nn::Module& model, const checkpoint::Checkpoint& saved, Weights which) {
  std::map<std::string, Tensor> targets;
  for (const nn::Parameter& parameter : model.parameters()) {
    targets["model/" + parameter.name] = parameter.tensor.detach();
  }
  for (const auto& [name, statistics] : model.statistics()) targets["statistics/" + name] = statistics->committed();
  copy_all(targets, weights_of(saved, which), saved.path);
}

void broadcast_optimizer(optim::Optimizer& optimizer, comm::Communicator& communicator) {
  const Stream here = Stream::calling_thread();
  for (const auto& state : {optimizer.state(), optimizer.parameter_state()}) {
    for (const auto& [name, tensor] : state) communicator.broadcast(tensor, 0, Stream::current(tensor.device()));
  }
  const Tensor& parameter_steps = optimizer.parameter_steps();
  communicator.broadcast(parameter_steps, 0, Stream::current(parameter_steps.device()));
  const Tensor steps = Tensor::from<std::int64_t>({optimizer.applied_steps()}, {1});
  communicator.broadcast(steps, 0, here);
  optimizer.set_applied_steps(steps.as<std::int64_t>()[0]);
}

}  // namespace lockstep::step
