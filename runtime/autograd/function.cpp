// SPDX-License-Identifier: Apache-2.0
#include "runtime/autograd/function.h"

#include <algorithm>
#include <optional>
#include <string>

#include "runtime/autograd/cast.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/base/error.h"

namespace lockstep::autograd {

namespace {

std::size_t place_in(const std::vector<Tensor>& tensors, const Tensor& tensor) {
  return static_cast<std::size_t>(
      std::ranges::find_if(tensors, [&](const Tensor& each) { return each.defined() && each.is(tensor); }) -
      tensors.begin());
}

/// The shape, dtype and device of a tensor and of its gradient.
struct Like {
  Shape shape;
  DType dtype = DType::kFloat32;
  Device device;
};

Like like(const Tensor& tensor) { return {tensor.shape(), tensor.dtype(), tensor.device()}; }

/// The gradient as a result of what it was computed from, whose own gradient is an error; itself where that has none.
Tensor without_second_derivative(const Tensor& grad, const std::vector<Tensor>& known, std::size_t argument) {
  const Tensor result = grad.detach();
  record(result, "once-differentiable", known,
         {.fused = [argument](const Tensor&, const BackwardContext&) -> std::vector<Tensor> {
           throw UsageError("the backward() of a Function cannot be differentiated again: it gives its argument " +
                                std::to_string(argument) + " a gradient without a graph",
                            "Compute it by operations instead of a loop, or, where it is a constant, say so: "
                            "static constexpr bool kOnceDifferentiable = false;");
         }});
  return result;
}

/// Tells a context of its backward pass.
class Within {
 public:
  Within(const BackwardContext*& place, const BackwardContext& pass) : place_(place) { place_ = &pass; }
  ~Within() { place_ = nullptr; }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  const BackwardContext*& place_;
};

}  // namespace

std::vector<Tensor> FunctionContext::saved_tensors() const {
  if (backward_ == nullptr) throw UsageError("saved_tensors() outside backward()");
  std::vector<Tensor> tensors;
  for (const Saved& saved : saved_) {
    tensors.push_back(saved.result == kNoResult ? backward_->saved(saved.tensor)
                                                : backward_->result(saved.tensor, saved.result));
  }
  return tensors;
}

bool FunctionContext::needs_input_grad(std::size_t i) const {
  return backward_ != nullptr ? backward_->needs(i) : recorded_.at(i);
}

std::vector<Tensor> FunctionCall::run(std::vector<Tensor> arguments, const DType* cast_inputs, SecondDerivative second,
                                      const Forward& forward, BackwardOfFunction backward) {
  std::optional<ScopedAutocastState> off;
  if (cast_inputs != nullptr && autocast_state().enabled) {
    for (Tensor& argument : arguments) {
      const bool floating = argument.defined() && is_floating(argument.dtype()) && argument.dtype() != DType::kFloat64;
      if (floating) argument = cast(argument, *cast_inputs);
    }
    off.emplace(AutocastState{.enabled = false, .dtype = autocast_state().dtype});
  }
  const auto context = std::make_shared<FunctionContext>();
  for (const Tensor& argument : arguments) context->recorded_.push_back(is_recorded(argument));
  std::vector<Tensor> results;
  {
    const NoGrad unrecorded;
    results = forward(*context, arguments);
  }
  std::vector<Tensor> differentiable;
  std::vector<std::size_t> numbers;  // of each result among those; that of none: their count
  std::vector<Like> outputs;
  for (Tensor& result : results) {
    if (!result.defined()) throw UsageError("a Function whose forward() gives an undefined tensor");
    const bool has_none = place_in(context->non_differentiable_, result) < context->non_differentiable_.size();
    // An argument that is handed on keeps its own place in the graph.
    const bool handed_on = place_in(arguments, result) < arguments.size();
    if (handed_on) result = result.detach();
    outputs.push_back(like(result));
    numbers.push_back(has_none ? static_cast<std::size_t>(-1) : differentiable.size());
    if (!has_none) differentiable.push_back(result);
  }
  for (const Tensor& tensor : std::exchange(context->to_save_, {})) {
    const std::size_t result = place_in(differentiable, tensor);
    if (tensor.defined() && result < differentiable.size()) {
      context->saved_.push_back({SavedTensor(tensor), result});
    } else if (tensor.defined() && place_in(arguments, tensor) < arguments.size()) {
      context->saved_.push_back({SavedTensor::in_graph(tensor)});
    } else {
      context->saved_.push_back({SavedTensor(tensor)});
    }
  }
  context->non_differentiable_.clear();
  if (differentiable.empty()) return results;
  std::vector<Like> inputs;
  for (const Tensor& argument : arguments) inputs.push_back(argument.defined() ? like(argument) : Like{});
  record(differentiable, "function", arguments, OnLosses::kUnknown,
         {.recorded = [context, backward = std::move(backward), outputs, numbers, inputs, second](
                          const Tensor&, const BackwardContext& pass) {
           std::vector<Tensor> gradients;
           for (std::size_t i = 0; i < outputs.size(); ++i) {
             Tensor arrived = numbers[i] < pass.gradients().size() ? pass.gradients()[numbers[i]] : Tensor();
             if (!arrived.defined()) arrived = Tensor::zeros(outputs[i].shape, outputs[i].dtype, outputs[i].device);
             gradients.push_back(std::move(arrived));
           }
           const Within here(context->backward_, pass);
           std::vector<Tensor> grads;
           {
             const GradMode mode(grad_enabled() && second != SecondDerivative::kNone);
             grads = backward(*context, gradients);
           }
           for (std::size_t i = 0; i < grads.size() && i < context->recorded_.size(); ++i) {
             if (!pass.needs(i)) grads[i] = {};
             if (!grads[i].defined()) continue;
             if (grads[i].shape() != inputs[i].shape) {
               throw ShapeError("the backward() of a Function gives its argument " + std::to_string(i) + ", of shape " +
                                inputs[i].shape.str() + ", a gradient of shape " + grads[i].shape().str());
             }
             // The gradient gets the argument's dtype: a leaf's gradient has the leaf's.
             grads[i] = cast(grads[i], inputs[i].dtype);
             if (!pass.recorded() || second == SecondDerivative::kRecorded || grads[i].requires_grad()) continue;
             std::vector<Tensor> known = gradients;
             for (const Tensor& saved : context->saved_tensors()) known.push_back(saved);
             grads[i] = without_second_derivative(grads[i], known, i);
           }
           return grads;
         }});
  return results;
}

}  // namespace lockstep::autograd
