// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/autograd/meta.h"
#include "runtime/autograd/saved_tensor.h"
#include "runtime/kernels/backend.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::autograd {

/// Where an operation's backward puts the gradient of one input.
struct GradTarget {
  Tensor out;
  bool accumulate = false;  ///< add to `out` instead of overwriting it
};

/// How an operation that ends in an activation begins its backward: dz = dy * activation'(at), elementwise. Whoever
/// makes dy as a matrix product can multiply that in on its way out (kernels::Epilogue), which saves a pass over it and
/// rounds 16-bit values once instead of twice.
struct ActivationDerivative {
  kernels::Activation activation = kernels::Activation::kNone;
  SavedTensor at;  ///< the result's shape and dtype: z, or the result where the derivative follows from that
};

/// What the operations of one walk through the graph share.
struct PassState {
  /// Gradients of an arena's parameters are written where they belong.
  bool into_slots = false;
  /// Backward functions may run fused. Not where they are recorded.
  bool fuse = false;
  /// How many gradients arrive at an operation's result; whoever asked for that gradient counts as well.
  std::unordered_map<const Node*, int> consumers;
  /// The operations whose gradient arrives multiplied by their ActivationDerivative.
  std::unordered_set<const Node*> multiplied;
};

/// What an operation's backward may ask about its inputs.
class BackwardContext {
 public:
  BackwardContext(const Node& node, PassState& pass) : node_(node), pass_(pass) {}

  /// The saved tensor, unless it was written since the forward pass: then throws UsageError naming this operation.
  const Tensor& saved(const SavedTensor& tensor) const;
  /// Whether input `i` needs a gradient at all.
  bool needs(std::size_t i) const;
  /// Memory for the gradient of input `i`, whose value is `input`: the slice of the gradient arena where the input is a
  /// parameter of one (in float32 or the input's dtype, which every operation can write), a new tensor like the input
  /// otherwise. An undefined `out` when the input needs none. Whoever asks fills it; the backward function returns
  /// `out` as the input's gradient either way.
  GradTarget target(std::size_t i, const Tensor& input) const;
  /// For a backward that can multiply it in: the derivative that the gradient of input `i` meets next, where this
  /// operation alone makes that gradient. Whoever takes it returns the gradient multiplied by it. Its `at` is as it was
  /// saved.
  std::optional<ActivationDerivative> take_derivative(std::size_t i) const;
  /// Whether the gradient that arrived is multiplied by this operation's own ActivationDerivative already.
  bool multiplied() const { return pass_.multiplied.contains(&node_); }

 private:
  const Node& node_;
  PassState& pass_;
};

/// A gradient for every input, undefined where there is none.
using BackwardFunction = std::function<std::vector<Tensor>(const Tensor& grad, const BackwardContext& context)>;

/// One recorded operation with one result. What its backward needs is captured by the function, values as SavedTensors,
/// and dropped when it ran.
class Node {
 public:
  Node(std::string_view name, std::vector<std::shared_ptr<Meta>> inputs, BackwardFunction backward, bool differentiable,
       ActivationDerivative derivative = {});
  /// Iterative, so that a deep graph does not overflow the stack.
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  std::string_view name() const { return name_; }
  /// Grows with creation: an operation's number is higher than those of the operations that it depends on.
  std::uint64_t sequence() const { return sequence_; }
  /// Null where an input is not recorded.
  const std::vector<std::shared_ptr<Meta>>& inputs() const { return inputs_; }
  /// Whether the backward is itself made of recorded operations, so that it can be differentiated again.
  bool differentiable() const { return differentiable_; }

  bool released() const { return backward_ == nullptr; }
  /// With kNone: there is none.
  const ActivationDerivative& derivative() const { return derivative_; }
  /// Throws UsageError when released.
  std::vector<Tensor> backward(const Tensor& grad, PassState& pass);
  /// Drops the saved activations and the way to the inputs.
  void release();

 private:
  std::string_view name_;
  std::uint64_t sequence_;
  std::vector<std::shared_ptr<Meta>> inputs_;
  BackwardFunction backward_;
  bool differentiable_;
  ActivationDerivative derivative_;
};

/// Whether the backward of an operation consists of recorded operations.
enum class Differentiable { kOnce, kTwice };

/// Makes `result` the result of an operation on `inputs`, if any of them is recorded; otherwise does nothing. `name`
/// must be a string literal. Where there is a `derivative`, the backward function asks BackwardContext::multiplied().
void record(const Tensor& result, std::string_view name, const std::vector<Tensor>& inputs, BackwardFunction backward,
            Differentiable differentiable = Differentiable::kOnce, ActivationDerivative derivative = {});

}  // namespace lockstep::autograd
