// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/autograd/autocast_state.h"
#include "runtime/autograd/meta.h"
#include "runtime/autograd/saved_tensor.h"
#include "runtime/kernels/activation.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::autograd {

using kernels::Activation;

/// The dtypes of an arena's slots into which an operation can write a gradient.
enum class TargetDType : std::uint8_t {
  kOwn,  ///< float32, and the input's dtype
  kAny,
};

/// Where an operation's backward puts the gradient of one input.
struct GradTarget {
  Tensor out;
  bool accumulate = false;  ///< add to `out` instead of overwriting it
};

/// How an operation that ends in an activation begins its backward: dz = dy * activation'(at), elementwise. Whoever
/// makes dy as a matrix product can multiply that in on its way out (kernels::Epilogue), which saves a pass over it and
/// rounds 16-bit values once instead of twice.
struct ActivationDerivative {
  Activation activation = Activation::kNone;
  SavedTensor at;  ///< the result's shape and dtype: z, or the result where the derivative follows from that
};

/// The gradients that arrive at an operation in a backward pass.
struct Arrived {
  std::vector<Tensor> gradients;  ///< one a result, undefined where none arrived
  Tensor addend;                  ///< where Backward::adds: still to be added to the first of them, if defined
};

/// The effect of an operation on losses, by which the scale of a pass's gradients is found (scale_mark.h).
enum class OnLosses : std::uint8_t {
  kMakes,       ///< a loss, of other things
  kAdds,        ///< a sum of them, or some of them in another shape or dtype: of the same scale
  kMultiplies,  ///< where one input alone has a graph: its product with numbers, among which may be a scale
  kScales,      ///< multiplies one by a GradScaler's scale
  kUnknown,     ///< whatever a function of the user's own does
};

/// The state that the operations of one walk through the graph share.
struct PassState {
  /// Gradients of an arena's parameters are written where they belong.
  bool into_slots = false;
  /// The pass is itself recorded, so that its gradients can be differentiated: operations run their recorded backward.
  bool recorded = false;
  /// Only the gradients of the places `wanted` are computed. The operations `needed` lead to these places.
  bool partial = false;
  std::unordered_set<const Meta*> wanted;
  std::unordered_set<const Node*> needed;
  /// The ScaleMark of the pass's gradients (scale_mark.h).
  std::uint64_t mark = 0;
  /// How many gradients arrive at an operation's results, plus one for each result whose gradient the caller wants.
  std::unordered_map<const Node*, int> consumers;
  /// The operations whose gradient arrives multiplied by their ActivationDerivative.
  std::unordered_set<const Node*> multiplied;

  /// Whether the pass computes the gradient of this place.
  bool needs(const Meta& meta) const {
    return !partial || wanted.contains(&meta) || (meta.producer && needed.contains(meta.producer.get()));
  }
};

/// The questions that an operation's backward may ask.
class BackwardContext {
 public:
  BackwardContext(Node& node, Arrived& arrived, PassState& pass) : node_(node), arrived_(arrived), pass_(pass) {}

  /// The gradient of each result, undefined where none arrived; at least one did.
  std::span<const Tensor> gradients() const { return arrived_.gradients; }
  /// Where Backward::adds: the two tensors of the result's dtype whose sum, rounded to that, is its gradient; the
  /// second is undefined where the first is all of it. The pass keeps neither, so that their memory goes with what is
  /// returned here: `grad` and gradients() are undefined from then on.
  std::array<Tensor, 2> take_gradient() const;

  /// The saved tensor, unless it was written since the forward pass: then throws UsageError naming this operation.
  const Tensor& saved(const SavedTensor& tensor) const;
  /// The saved result number `i` of this operation with its place in the graph, for a recorded backward. Throws as
  /// saved() does.
  Tensor result(const SavedTensor& tensor, std::size_t i = 0) const;
  /// Whether the pass is itself recorded: then a function that serves for both ways has to compute by operations.
  bool recorded() const { return pass_.recorded; }
  /// Whether this pass needs a gradient of input `i`.
  bool needs(std::size_t i) const;
  /// Memory for the gradient of input `i`, whose value is `input`: the slice of the gradient arena where the input is a
  /// parameter of one whose dtype the operation can write, a new tensor like the input otherwise. An undefined `out`
  /// when the input needs none. Whoever asks fills it; the backward function returns `out` as the input's gradient
  /// either way.
  GradTarget target(std::size_t i, const Tensor& input, TargetDType dtype = TargetDType::kOwn) const;
  /// For a backward that can multiply it in: the derivative that the gradient of input `i` meets next, where this
  /// operation alone makes that gradient. Whoever takes it returns the gradient multiplied by it. Its `at` is as it was
  /// saved.
  std::optional<ActivationDerivative> take_derivative(std::size_t i) const;
  /// Whether the gradient that arrived is multiplied by this operation's own ActivationDerivative already.
  bool multiplied() const { return pass_.multiplied.contains(&node_); }
  /// For the backward of a scaled loss: the gradients of the pass are multiplied by the scale of this ScaleMark
  /// (scale_mark.h). Throws UsageError where they are multiplied by another scaler's.
  void note_scaler(std::uint64_t mark) const;

 private:
  friend std::vector<Tensor> walk_again(const BackwardContext&, const Tensor&, const Tensor&,
                                        const std::vector<Tensor>&);

  /// Takes the leaf's slot for this operation, until it has run. False where another thread's operation has it.
  bool take_slot(Meta& leaf) const;

  Node& node_;
  Arrived& arrived_;
  PassState& pass_;
  mutable std::vector<std::unique_lock<std::mutex>> slots_;  ///< those taken
};

/// A gradient for every input, undefined where there is none. `grad` is the gradient of the first result, for most
/// operations the only one. Gradients of another floating dtype than their input's are cast to that.
using BackwardFunction = std::function<std::vector<Tensor>(const Tensor& grad, const BackwardContext& context)>;

/// How the gradients of an operation's inputs are computed. Either function may be left out, not both.
struct Backward {
  /// Computes the gradients by kernels. Left out: `recorded` serves.
  BackwardFunction fused = nullptr;
  /// Computes the gradients by operations, so that they can be differentiated again: runs instead of `fused` in a pass
  /// with create_graph. It reads inputs saved with SavedTensor::in_graph() and results from BackwardContext::result().
  /// Left out: differentiating the gradients is an error that names the operation.
  BackwardFunction recorded = nullptr;
  /// Where there is one, `fused` asks BackwardContext::multiplied().
  ActivationDerivative derivative = {};
  /// For an operation with one result: `fused` adds the last gradient to those that arrived before it, in the pass in
  /// which it reads them, and asks BackwardContext::take_gradient() for both. A sum is then no pass of its own.
  bool adds = false;
};

/// One recorded operation. What its backward needs is captured by the functions, values as SavedTensors, and dropped
/// when it ran.
class Node : public std::enable_shared_from_this<Node> {
 public:
  Node(std::string_view name, std::vector<std::shared_ptr<Meta>> inputs, Backward backward,
       OnLosses on_losses = OnLosses::kMakes);
  /// Iterative, so that a deep graph does not overflow the stack.
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// A node between `place`, the result of an operation, and whoever uses that: in the order of nodes it comes right
  /// behind the operation. It is never released.
  static std::shared_ptr<Node> behind(const std::shared_ptr<Meta>& place, std::string_view name, Backward backward);

  std::string_view name() const { return name_; }
  /// Grows with creation: an operation's number is higher than those of the operations that it depends on.
  std::uint64_t sequence() const { return sequence_; }
  /// Null where an input is not recorded.
  const std::vector<std::shared_ptr<Meta>>& inputs() const { return inputs_; }
  /// Whether its gradients can be differentiated again.
  bool differentiable() const { return backward_.recorded != nullptr; }

  /// A result, as its place in the graph and its dtype, which is that of its gradient.
  struct Result {
    std::weak_ptr<Meta> meta;
    DType dtype;
  };
  const std::vector<Result>& results() const { return results_; }
  /// The place in the graph of result `i`, also where nobody holds that result any more.
  std::shared_ptr<Meta> meta_of_result(std::size_t i);
  /// Makes `tensor` the next result. Hooks that it has as the result of another operation are left to that.
  static void add_result(const std::shared_ptr<Node>& node, const Tensor& tensor);

  OnLosses on_losses() const { return on_losses_; }
  bool released() const { return released_; }
  /// The activation's derivative; kNone: there is none.
  const ActivationDerivative& derivative() const { return backward_.derivative; }
  /// Backward::adds
  bool adds() const { return backward_.adds; }
  /// Runs in the autocast state of the forward pass. Throws UsageError when released.
  std::vector<Tensor> backward(Arrived& arrived, PassState& pass);
  /// Drops the saved activations.
  void release();

 private:
  std::string_view name_;
  std::uint64_t sequence_;
  std::vector<std::shared_ptr<Meta>> inputs_;
  std::vector<Result> results_;
  AutocastState autocast_ = autocast_state();
  Backward backward_;
  OnLosses on_losses_;
  bool stays_ = false;  ///< release() does nothing
  bool released_ = false;
};

/// Makes `result` the result of an operation on `inputs`, if any of them is recorded and it is floating; otherwise
/// tells the thread's observer alone. `name` must be a string literal.
void record(const Tensor& result, std::string_view name, const std::vector<Tensor>& inputs, Backward backward);
void record(const Tensor& result, std::string_view name, const std::vector<Tensor>& inputs, OnLosses on_losses,
            Backward backward);
/// record() for an operation with several results, of which integer ones have no gradient.
void record(const std::vector<Tensor>& results, std::string_view name, const std::vector<Tensor>& inputs,
            Backward backward);
void record(const std::vector<Tensor>& results, std::string_view name, const std::vector<Tensor>& inputs,
            OnLosses on_losses, Backward backward);

}  // namespace lockstep::autograd
