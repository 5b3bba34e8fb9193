// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/module.h"

#include <algorithm>
#include <atomic>
#include <string_view>

#include "runtime/autograd/cast.h"
#include "runtime/autograd/meta.h"
#include "runtime/base/error.h"
#include "runtime/nn/initial_values.h"
#include "runtime/nn/layer_scope.h"
#include "runtime/nn/name_hash.h"
#include "runtime/nn/outline_tally.h"
#include "runtime/nn/step_context.h"

namespace lockstep::nn {

namespace {

thread_local bool without_values = false;
thread_local OutlineTally tally;  ///< of what is built within the outermost WithoutValues

}  // namespace

WithoutValues::WithoutValues() : outer_(std::exchange(without_values, true)) {
  if (!outer_) tally = {};
}
WithoutValues::~WithoutValues() { without_values = outer_; }

Module::Module() {
  if (without_values) {
    // Takes no number of those that values are drawn by; masks differ from layer to layer all the same.
    static std::atomic<std::uint32_t> made{0};
    random_name_.layer = ++made;
    return;
  }
  const MadeName name = next_made_name();
  random_name_ = {name.seed, name.number, 0};
}

Tensor Module::forward_all(std::span<const Tensor> inputs) {
  require_inputs(inputs.size(), 1);
  return forward(inputs.front());
}

Tensor Module::operator()(std::span<const Tensor> inputs) {
  const LayerScope scope(*this);
  if (!hooks_) return forward_all(inputs);
  return hooks_->call(*this, inputs, [this](std::span<const Tensor> all) { return forward_all(all); });
}

Tensor Module::call(const Tensor& x, const std::function<Tensor(const Tensor&)>& run) {
  const LayerScope scope(*this);
  if (!hooks_) return run(x);
  return hooks_->call(*this, {&x, 1}, [&](std::span<const Tensor> inputs) {
    require_inputs(inputs.size(), 1);
    return run(inputs.front());
  });
}

ModuleHooks& Module::hooks() {
  if (!hooks_) hooks_ = std::make_unique<ModuleHooks>();
  return *hooks_;
}

HookHandle Module::register_forward_pre_hook(ForwardPreHook hook) { return hooks().before.add(std::move(hook)); }
HookHandle Module::register_forward_hook(ForwardHook hook) { return hooks().behind.add(std::move(hook)); }
HookHandle Module::register_full_backward_hook(BackwardHook hook) { return hooks().backward.add(std::move(hook)); }

void Module::require_inputs(std::size_t given, std::size_t expected) {
  if (given == expected) return;
  throw UsageError("the model takes " + std::to_string(expected) + (expected == 1 ? " input" : " inputs") +
                       ", and is given " + std::to_string(given),
                   "Give it data whose samples have that many inputs, Dataset::more_inputs() included.");
}

std::vector<Parameter> Module::parameters() const {
  std::vector<Parameter> all;
  const auto add = [&all](Parameter parameter) {
    const auto same = [&parameter](const Parameter& known) { return known.tensor.is(parameter.tensor); };
    if (std::ranges::none_of(all, same)) all.push_back(std::move(parameter));
  };
  for (const Parameter& parameter : parameters_) add(parameter);
  for (const auto& [name, child] : children_) {
    for (Parameter& parameter : child->parameters()) {
      parameter.name = name + "." + parameter.name;
      add(std::move(parameter));
    }
  }
  return all;
}

std::vector<std::pair<std::string, RunningStatistics*>> Module::statistics() {
  std::vector<std::pair<std::string, RunningStatistics*>> all;
  for_each([&all](const std::string& path, Module& module) {
    for (const auto& [name, statistics] : module.statistics_) {
      all.emplace_back(path.empty() ? name : path + "." + name, statistics.get());
    }
  });
  return all;
}

void Module::commit_statistics() {
  for (const auto& [name, statistics] : statistics()) statistics->commit();
}

void Module::train(bool training) {
  for_each([training](const std::string&, Module& module) { module.training_ = training; });
}

Module& Module::to(DType dtype) {
  if (!is_floating(dtype)) throw UsageError("a module cannot become " + std::string(name_of(dtype)));
  const auto is_done = [dtype](const Tensor& tensor) { return tensor.dtype() == dtype; };
  for (const Parameter& parameter : to_replace(is_done, std::string(name_of(dtype)))) {
    const Tensor rounded = autograd::cast(parameter.tensor.detach(), dtype);
    parameter.tensor.rebind(rounded.storage(), 0, dtype);
    Tensor& grad = autograd::meta_of(parameter.tensor).grad;
    if (grad.defined()) grad = autograd::cast(grad.detach(), dtype);
  }
  return *this;
}

Module& Module::to(Device device) {
  const auto is_done = [device](const Tensor& tensor) { return tensor.device() == device; };
  for (const Parameter& parameter : to_replace(is_done, "a tensor on " + str(device))) {
    const Tensor there = parameter.tensor.detach().to(device);
    parameter.tensor.rebind(there.storage(), 0, there.dtype());
    Tensor& grad = autograd::meta_of(parameter.tensor).grad;
    if (grad.defined()) grad = grad.detach().to(device);
  }
  for (const auto& [name, running] : statistics()) running->move_to(device);
  return *this;
}

std::vector<Parameter> Module::to_replace(const std::function<bool(const Tensor&)>& is_done,
                                          const std::string& what) const {
  std::vector<Parameter> others = parameters();
  std::erase_if(others, [&is_done](const Parameter& parameter) { return is_done(parameter.tensor); });
  for (const Parameter& parameter : others) {
    if (!autograd::meta_of(parameter.tensor).slot.defined()) continue;
    throw UsageError("parameter " + parameter.name + " cannot become " + what + ": an optimizer trains it",
                     "Choose dtype and device with amp::initialize, or convert a model without an optimizer.");
  }
  return others;
}

DType Module::dtype() const {
  const Tensor* first = first_parameter();
  return first == nullptr ? DType::kFloat32 : first->dtype();
}

const Tensor* Module::first_parameter() const {
  if (!parameters_.empty()) return &parameters_.front().tensor;
  for (const auto& [name, child] : children_) {
    if (const Tensor* first = child->first_parameter()) return first;
  }
  return nullptr;
}

void Module::for_each(const std::function<void(const std::string&, Module&)>& visit) { walk("", visit); }

void Module::walk(const std::string& path, const std::function<void(const std::string&, Module&)>& visit) {
  visit(path, *this);
  for (const auto& [name, child] : children_) child->walk(path.empty() ? name : path + "." + name, visit);
}

std::vector<std::uint64_t> Module::random_calls() {
  std::vector<std::uint64_t> calls;
  for_each([&calls](const std::string&, Module& module) { calls.push_back(module.random_name_.calls); });
  return calls;
}

void Module::set_random_calls(std::span<const std::uint64_t> calls) {
  std::size_t i = 0;
  for_each([&](const std::string&, Module& module) {
    if (i < calls.size()) module.random_name_.calls = calls[i++];
  });
}

ops::DropoutKey Module::next_random_key() {
  const StepContext::Values at = StepContext::current();
  if (!at.named) return {random_name_.seed, random_name_.calls++, random_name_.layer};
  return {at.seed.value_or(random_name_.seed), at.step, random_name_.layer, StepContext::next_call(random_name_.layer),
          at.position};
}

void Module::choose_initializers(const std::function<Initializer(const Parameter&)>& choose) {
  const std::vector<Parameter> before = parameters();
  for_each([&choose](const std::string& path, Module& module) {
    for (Parameter& parameter : module.parameters_) {
      Parameter named = parameter;
      if (!path.empty()) named.name = path + "." + named.name;
      parameter.initializer = choose(named);
    }
  });
  if (without_values) return;
  const std::vector<Parameter> after = parameters();
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (after[i].initializer != before[i].initializer) fill(after[i].tensor, after[i].initializer);
  }
}

Tensor Module::add_parameter(std::string name, const Shape& shape, ParameterKind kind, Initializer initializer) {
  if (without_values) tally.add_parameter(shape.numel());
  const Tensor tensor = Tensor::empty(shape, DType::kFloat32);
  if (!without_values) fill(tensor, initializer);
  tensor.set_requires_grad(true);
  parameters_.push_back({std::move(name), tensor, kind, initializer});
  return tensor;
}

Tensor Module::share_parameter(std::string name, const Parameter& parameter) {
  parameters_.push_back({std::move(name), parameter.tensor, parameter.kind, parameter.initializer});
  return parameter.tensor;
}

RunningStatistics& Module::add_statistics(std::string name, std::int64_t channels) {
  if (without_values) tally.add_statistics(channels);
  statistics_.emplace_back(std::move(name), std::make_unique<RunningStatistics>(channels));
  return *statistics_.back().second;
}

void Module::adopt(std::string name, std::unique_ptr<Module> module) {
  for (const auto& [other, child] : children_) {
    if (other == name) throw UsageError("two modules are called '" + name + "'");
  }
  children_.emplace_back(std::move(name), std::move(module));
}

void name_layers(Module& root) {
  root.for_each([](const std::string& path, Module& module) { module.random_name_.layer = name_hash(path); });
}

void initialize(Module& root, std::uint64_t seed) {
  root.for_each([seed](const std::string&, Module& module) { module.random_name_ = {seed, 0, 0}; });
  name_layers(root);
  for (const Parameter& parameter : root.parameters()) {
    autograd::meta_of(parameter.tensor).name = parameter.name;
    fill(parameter.tensor, parameter.initializer,
         CounterRng(seed, CounterRng::Purpose::kInitialization, name_hash(parameter.name)));
  }
}

}  // namespace lockstep::nn
