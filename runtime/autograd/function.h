// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <any>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/autograd/node.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::autograd {

/// The values that the forward pass of a Function keeps for its backward pass.
class FunctionContext {
 public:
  /// Keeps tensors for the backward pass: arguments, results, or tensors computed between them.
  void save_for_backward(std::vector<Tensor> tensors) { to_save_ = std::move(tensors); }
  /// The tensors of save_for_backward() in the same order, arguments and results with their place in the graph. In
  /// backward() only. Throws UsageError where one was written since.
  std::vector<Tensor> saved_tensors() const;
  /// Anything else: context.saved_data["p"] = 2.0, std::any_cast<double>(context.saved_data["p"]).
  std::map<std::string, std::any> saved_data;
  /// Whether argument `i` needs a gradient; false for one that is no tensor.
  bool needs_input_grad(std::size_t i) const;
  /// In forward(): no gradient flows through these results.
  void mark_non_differentiable(std::vector<Tensor> results) { non_differentiable_ = std::move(results); }

 private:
  friend class FunctionCall;
  struct Saved {
    SavedTensor tensor;
    std::size_t result = kNoResult;  ///< the number of the result that it is
  };
  static constexpr std::size_t kNoResult = static_cast<std::size_t>(-1);

  std::vector<Tensor> to_save_;
  std::vector<Tensor> non_differentiable_;
  std::vector<Saved> saved_;
  std::vector<bool> recorded_;                 ///< by argument
  const BackwardContext* backward_ = nullptr;  ///< while backward() runs
};

/// Whether the gradients of a Function can be differentiated again.
enum class SecondDerivative : std::uint8_t {
  kUnknown,   ///< where they have a graph
  kRecorded,  ///< its backward is made of operations; gradients without a graph are constants
  kNone,      ///< never
};

/// One call of a Function, whatever the types of its arguments.
class FunctionCall {
 public:
  using Forward = std::function<std::vector<Tensor>(FunctionContext&, const std::vector<Tensor>&)>;
  using BackwardOfFunction = std::function<std::vector<Tensor>(FunctionContext&, const std::vector<Tensor>&)>;
  /// `arguments`: undefined where one is no tensor. `cast_inputs`: null for none.
  static std::vector<Tensor> run(std::vector<Tensor> arguments, const DType* cast_inputs, SecondDerivative second,
                                 const Forward& forward, BackwardOfFunction backward);
};

/// An operation of one's own, as torch::autograd::Function:
///
///   struct MyMM : autograd::Function<MyMM> {
///     static Tensor forward(autograd::FunctionContext& context, const Tensor& a, const Tensor& b) {
///       context.save_for_backward({a, b});
///       return ops::matmul(a, b);
///     }
///     static std::vector<Tensor> backward(autograd::FunctionContext& context, const std::vector<Tensor>& grads) {
///       const std::vector<Tensor> saved = context.saved_tensors();
///       return {ops::matmul(grads[0], false, saved[1], true), ops::matmul(saved[0], true, grads[0], false)};
///     }
///   };
///   const Tensor c = MyMM::apply(a, b);
///
/// forward() takes the context and any arguments, of which the tensors may have gradients, and gives a Tensor or
/// several in a vector. It is not recorded, and runs in the caller's autocast state. backward() takes a gradient for
/// each result, zeros where none arrived, and gives one for each argument: undefined where it has none, as for what is
/// no tensor. It runs in the autocast state of the forward pass (PyTorch's custom_fwd and custom_bwd). Where it is made
/// of operations it can be differentiated again.
///
/// A backward() that is a loop over elements has no graph. Where the gradients of a pass with create_graph are
/// differentiated, a gradient without a graph, of a Function that was given or has saved a tensor with one, is an error
/// that names its argument. `static constexpr bool kOnceDifferentiable = true;` in the struct makes it one for all of
/// them (PyTorch's once_differentiable), false says that such a gradient is a constant, as a mask is.
///
/// With `static constexpr DType kCastInputs = DType::kFloat32;` in the struct, floating arguments are cast to that
/// under autocast, and both passes run with autocast off: custom_fwd(cast_inputs=torch.float32).
template <class F>
class Function {
 public:
  template <class... Arguments>
  static auto apply(const Arguments&... arguments) {
    using Result = decltype(F::forward(std::declval<FunctionContext&>(), arguments...));
    constexpr bool kOne = std::same_as<std::remove_cvref_t<Result>, Tensor>;
    const auto forward = [&](FunctionContext& context, const std::vector<Tensor>& tensors) -> std::vector<Tensor> {
      std::size_t i = 0;
      // In braces: from left to right.
      const std::tuple<const Arguments&...> each{pick(arguments, tensors, i)...};
      return std::apply(
          [&](const Arguments&... cast) -> std::vector<Tensor> {
            if constexpr (kOne) {
              return {F::forward(context, cast...)};
            } else {
              return F::forward(context, cast...);
            }
          },
          each);
    };
    const DType* cast_inputs = nullptr;
    if constexpr (requires { F::kCastInputs; }) cast_inputs = &F::kCastInputs;
    SecondDerivative second = SecondDerivative::kUnknown;
    if constexpr (requires { F::kOnceDifferentiable; }) {
      second = F::kOnceDifferentiable ? SecondDerivative::kNone : SecondDerivative::kRecorded;
    }
    std::vector<Tensor> results =
        FunctionCall::run({tensor_of(arguments)...}, cast_inputs, second, forward, F::backward);
    if constexpr (kOne) {
      return results.front();
    } else {
      return results;
    }
  }

 private:
  static Tensor tensor_of(const Tensor& tensor) { return tensor; }
  template <class T>
  static Tensor tensor_of(const T&) {
    return {};
  }
  static const Tensor& pick(const Tensor&, const std::vector<Tensor>& tensors, std::size_t& i) { return tensors[i++]; }
  template <class T>
  static const T& pick(const T& argument, const std::vector<Tensor>&, std::size_t& i) {
    ++i;
    return argument;
  }
};

}  // namespace lockstep::autograd
