// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/saved_tensors.h"

#include <string_view>

#include "runtime/checkpoint/tensor_match.h"
#include "runtime/tensor/stream.h"

namespace lockstep::step {

namespace {

constexpr std::string_view kOptimizerPrefix = "optimizer/";

bool is_optimizer(const std::string& name) { return name.starts_with(kOptimizerPrefix); }

std::map<std::string, Tensor> without_optimizer(std::map<std::string, Tensor> tensors) {
  std::erase_if(tensors, [](const auto& entry) { return is_optimizer(entry.first); });
  return tensors;
}

/// Copies all or, where names or shapes differ, none.
void copy_all(const std::map<std::string, Tensor>& targets, const std::map<std::string, Tensor>& found,
              const std::string& path) {
  std::map<std::string, checkpoint::TensorSpec> expected;
  for (const auto& [name, tensor] : targets) expected[name] = {tensor.dtype(), tensor.shape()};
  checkpoint::require_match(expected, found, path);
  for (const auto& [name, tensor] : targets) tensor.copy_from(found.at(name));
}

}  // namespace

std::map<std::string, Tensor> state_tensors(const nn::Arena& arena, const optim::Optimizer& optimizer) {
  std::map<std::string, Tensor> tensors;
  const auto optimizer_state = optimizer.state();
  const auto parameter_state = optimizer.parameter_state();
  for (const nn::Arena::Slot& slot : arena.slots()) tensors["model/" + slot.parameter.name] = arena.master(slot);
  std::int64_t number = 0;
  for (const optim::Optimizer::Slot& slot : optimizer.slots()) {
    const std::int64_t at = number++;
    if (slot.arena != &arena) continue;
    const nn::Parameter& parameter = slot.parameter();
    tensors[std::string(kOptimizerPrefix) + "step/" + parameter.name] = optimizer.parameter_steps().rows(at, at + 1);
    for (const auto& [name, numbers] : parameter_state) {
      tensors[std::string(kOptimizerPrefix) + name + "/" + parameter.name] = numbers.rows(at, at + 1);
    }
    for (const auto& [name, flat] : optimizer_state) {
      tensors[std::string(kOptimizerPrefix) + name + "/" + parameter.name] =
          flat.rows(slot.begin, slot.end).reshaped(parameter.tensor.shape());
    }
  }
  for (const auto& [name, statistics] : arena.statistics()) tensors["statistics/" + name] = statistics->committed();
  return tensors;
}

std::map<std::string, Tensor> host_copies(const std::map<std::string, Tensor>& tensors) {
  std::map<std::string, Tensor> copies;
  for (const auto& [name, tensor] : tensors) copies[name] = tensor.to(kCpu);
  return copies;
}

void restore_tensors(nn::Arena& arena, optim::Optimizer& optimizer, const checkpoint::Checkpoint& saved,
                     bool with_optimizer) {
  const std::map<std::string, Tensor> targets = state_tensors(arena, optimizer);
  if (with_optimizer) {
    copy_all(targets, saved.tensors, saved.path);
  } else {
    copy_all(without_optimizer(targets), without_optimizer(saved.tensors), saved.path);
  }
  arena.refresh_copies();
}

void restore_model(nn::Module& model, const checkpoint::Checkpoint& saved) {
  std::map<std::string, Tensor> targets;
  for (const nn::Parameter& parameter : model.parameters()) {
    targets["model/" + parameter.name] = parameter.tensor.detach();
  }
  for (const auto& [name, statistics] : model.statistics()) targets["statistics/" + name] = statistics->committed();
  copy_all(targets, without_optimizer(saved.tensors), saved.path);
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
