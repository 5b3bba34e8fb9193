// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnx/trace.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "runtime/autograd/grad_mode.h"
#include "runtime/autograd/meta.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/base/error.h"
#include "runtime/nn/forward.h"
#include "runtime/nn/layer_scope.h"

namespace lockstep::onnx {

namespace {

class Tracer final : private autograd::RecordObserver {
 public:
  explicit Tracer(nn::Module& model) {
    model.for_each([this](const std::string& path, nn::Module& module) { paths_.emplace(&module, path); });
    for (const nn::Parameter& parameter : model.parameters()) {
      names_[&autograd::meta_of(parameter.tensor)] = parameter.name;
    }
  }

  Trace run(nn::Module& model, std::span<const Tensor> inputs) {
    for (const Tensor& input : inputs) trace_.inputs.push_back(add(input, kNone));
    outer_ = autograd::observe_records(this);
    Tensor output;
    try {
      output = nn::forward(model, inputs);
    } catch (...) {
      autograd::observe_records(outer_);
      throw;
    }
    autograd::observe_records(outer_);
    trace_.output = value_of(output);
    return std::move(trace_);
  }

 private:
  void recorded(std::string_view name, const std::vector<Tensor>& results, const std::vector<Tensor>& inputs) override {
    const nn::Module* const module = nn::LayerScope::current();
    const auto path = paths_.find(module);
    Operation operation{.name = std::string(name), .layer = path == paths_.end() ? "" : path->second};
    for (const Tensor& input : inputs) operation.inputs.push_back(value_of(input));
    const int number = static_cast<int>(trace_.operations.size());
    const bool constant = operation.name != "expand" && are_constant(operation.inputs);
    for (const Tensor& result : results) {
      operation.results.push_back(add(result, constant ? kNone : number));
      if (constant) trace_.values.back().constant = result;
    }
    trace_.operations.push_back(std::move(operation));
  }

  void noted(const Tensor& result, const std::any& options, const std::vector<Tensor>& others) override {
    const int value = value_of(result);
    const auto operation =
        std::find_if(trace_.operations.rbegin(), trace_.operations.rend(),
                     [value](const auto& each) { return !each.results.empty() && each.results.front() == value; });
    if (operation == trace_.operations.rend()) return;
    operation->options = options;
    std::vector<int> more;
    for (const Tensor& other : others) more.push_back(value_of(other));
    operation->inputs.insert(operation->inputs.end(), more.begin(), more.end());
    if (are_constant(more)) return;
    const int number = static_cast<int>(trace_.operations.rend() - operation) - 1;
    for (const int each : operation->results) {
      trace_.values[static_cast<std::size_t>(each)].producer = number;
      trace_.values[static_cast<std::size_t>(each)].constant = {};
    }
  }

  bool are_constant(const std::vector<int>& values) const {
    return std::ranges::all_of(values, [this](int value) {
      return value == kNone || trace_.values[static_cast<std::size_t>(value)].constant.defined();
    });
  }

  /// The value that a tensor is; a tensor that no operation has made is a constant.
  int value_of(const Tensor& tensor) {
    if (!tensor.defined()) return kNone;
    const auto found = numbers_.find(tensor.autograd_meta().get());
    if (tensor.autograd_meta() && found != numbers_.end()) return found->second;
    const int number = add(tensor, kNone);
    trace_.values.back().constant = tensor;
    const auto name = names_.find(tensor.autograd_meta().get());
    if (name != names_.end()) trace_.values.back().name = name->second;
    return number;
  }

  int add(const Tensor& tensor, int producer) {
    const int number = static_cast<int>(trace_.values.size());
    trace_.values.push_back({.shape = tensor.shape(), .dtype = tensor.dtype(), .producer = producer});
    // Its place in the graph is kept, so that no other tensor gets that, and its memory is not.
    autograd::meta_of(tensor);
    places_.push_back(tensor.autograd_meta());
    numbers_[places_.back().get()] = number;
    return number;
  }

  std::map<const nn::Module*, std::string> paths_;
  std::map<const autograd::Meta*, std::string> names_;  ///< of parameters
  std::vector<std::shared_ptr<autograd::Meta>> places_;
  std::map<const autograd::Meta*, int> numbers_;
  Trace trace_;
  autograd::RecordObserver* outer_ = nullptr;
};

/// The trace without what its output does not need, its values in the order in which operations read and make them.
Trace needed_of(const Trace& whole) {
  std::vector<bool> needed(whole.operations.size());
  std::vector<int> open{whole.output};
  while (!open.empty()) {
    const Value& value = whole.values[static_cast<std::size_t>(open.back())];
    open.pop_back();
    if (value.producer == kNone || needed[static_cast<std::size_t>(value.producer)]) continue;
    needed[static_cast<std::size_t>(value.producer)] = true;
    for (const int input : whole.operations[static_cast<std::size_t>(value.producer)].inputs) {
      if (input != kNone) open.push_back(input);
    }
  }
  Trace kept;
  std::map<int, int> numbers;
  const auto renumbered = [&](int value) {
    if (value == kNone) return kNone;
    const auto [entry, is_new] = numbers.try_emplace(value, static_cast<int>(kept.values.size()));
    if (is_new) kept.values.push_back(whole.values[static_cast<std::size_t>(value)]);
    return entry->second;
  };
  for (const int input : whole.inputs) kept.inputs.push_back(renumbered(input));
  for (std::size_t i = 0; i < whole.operations.size(); ++i) {
    if (!needed[i]) continue;
    Operation operation = whole.operations[i];
    for (int& input : operation.inputs) input = renumbered(input);
    for (int& result : operation.results) {
      result = renumbered(result);
      kept.values[static_cast<std::size_t>(result)].producer = static_cast<int>(kept.operations.size());
    }
    kept.operations.push_back(std::move(operation));
  }
  kept.output = renumbered(whole.output);
  return kept;
}

}  // namespace

Trace trace(nn::Module& model, std::span<const Tensor> inputs) {
  const autograd::NoGrad no_grad;
  model.train(false);
  const Trace whole = Tracer(model).run(model, inputs);
  if (whole.values[static_cast<std::size_t>(whole.output)].constant.defined()) {
    throw UsageError("the model's output does not come from its inputs by operations that record themselves");
  }
  return needed_of(whole);
}

}  // namespace lockstep::onnx
