// SPDX-License-Identifier: Apache-2.0
#include "runtime/autograd/engine.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include "runtime/autograd/anomaly.h"
#include "runtime/autograd/cast.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/autograd/gradient_sum.h"
#include "runtime/autograd/initial_gradients.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/autograd/scale_mark.h"
#include "runtime/autograd/tensor_hooks.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/tensor/memory.h"
#include "runtime/tensor/trace_range.h"

namespace lockstep::autograd {

namespace {

/// The tensors whose gradients are asked for, with their dtypes. Gradients get these, also where an operation read a
/// compute copy of another dtype.
using Wanted = std::unordered_map<const Meta*, DType>;

struct Callback {
  std::uint64_t order;
  std::function<void()> run;
};

/// The callbacks that hooks have given after_backward() in the pass of this thread; null outside a pass.
thread_local std::vector<Callback>* callbacks = nullptr;

/// One walk through the graph.
class Pass {
 public:
  Pass(const std::vector<Tensor>& outputs, BackwardOptions options, Wanted wanted)
      : options_(options), wanted_(std::move(wanted)), adds_to_leaves_(wanted_.empty()) {
    for (const Tensor& output : outputs) roots_.push_back(output.autograd_meta());
    // A gradient that will itself be differentiated must stay a value of its own.
    state_.into_slots = adds_to_leaves_ && !options_.create_graph;
    state_.recorded = options_.create_graph;
    collect();
    if (options_.create_graph && adds_to_leaves_) require_no_slots();
  }

  /// A part of the pass `whole`, for walk_again(): its leaves' hooks are left to that.
  Pass(const Tensor& output, Wanted wanted, const PassState& whole)
      : wanted_(std::move(wanted)), roots_{output.autograd_meta()}, adds_to_leaves_(!whole.partial), is_part_(true) {
    state_.into_slots = whole.into_slots;
    state_.mark = whole.mark;
    collect();
  }

  ~Pass() {
    for (const std::shared_ptr<PassGuard>& guard : entered_) guard->leave();
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  /// Throws UsageError unless the operations are newer than `sequence` and every leaf is one of `inputs`.
  void require_within(std::uint64_t sequence, const std::vector<Tensor>& inputs) const {
    const auto refuse = [](const std::string& what) {
      throw UsageError("a part of the network that runs again in the backward pass reads " + what +
                           ", which is neither its input nor one of its parameters",
                       "Hand it over as the input, or run this part without checkpointing its activations.");
    };
    for (const std::shared_ptr<Node>& node : order_) {
      if (node->sequence() < sequence) refuse("a result of '" + std::string(node->name()) + "'");
    }
    for (const auto& [leaf, uses] : leaf_uses_) {
      const auto is_leaf = [leaf = leaf](const Tensor& input) { return input.autograd_meta().get() == leaf; };
      if (std::ranges::none_of(inputs, is_leaf)) refuse(leaf->name.empty() ? "a tensor" : leaf->name);
    }
  }

  /// The pass begins with ones, so that the graph alone says what its gradients are multiplied by.
  void begin_with_ones() {
    if (state_.into_slots) state_.mark = mark_of_losses(roots_, order_);
  }

  /// `gradient`, or a copy of one that shows a slot: an operation hands it on as it is, and add_to_leaf() would take it
  /// for what was written there.
  Tensor apart_from_slots(const Tensor& gradient) const {
    const auto shows = [&gradient](const auto& use) {
      const Tensor& slot = use.first->slot;
      return slot.defined() && slot.storage().data() == gradient.storage().data();
    };
    return state_.into_slots && std::ranges::any_of(leaf_uses_, shows) ? copy(gradient) : gradient;
  }

  /// `gradients`: one for each output.
  void run(const std::vector<Tensor>& gradients) {
    const GradMode mode(options_.create_graph);
    const MemoryScope purpose(MemoryPurpose::kActivationGradients);
    if (is_part_) return walk(gradients);
    const TraceRange trace("backward");
    std::vector<Callback> at_end;
    const CallbackScope scope(&at_end);
    begin_leaves();
    walk(gradients);
    std::ranges::stable_sort(at_end, {}, &Callback::order);
    // By index: a callback may ask for another one.
    for (std::size_t i = 0; i < at_end.size(); ++i) std::exchange(at_end[i].run, nullptr)();
  }

  Tensor gradient_of(const Tensor& tensor) const {
    const auto found = results_.find(behind_hooks(tensor).get());
    return found == results_.end() ? Tensor() : found->second.sum;
  }

 private:
  struct CallbackScope {
    explicit CallbackScope(std::vector<Callback>* mine) : outer(callbacks) { callbacks = mine; }
    ~CallbackScope() { callbacks = outer; }
    CallbackScope(const CallbackScope&) = delete;
    CallbackScope& operator=(const CallbackScope&) = delete;
    std::vector<Callback>* outer;
  };

  void walk(const std::vector<Tensor>& gradients) {
    for (std::size_t i = 0; i < roots_.size(); ++i) arrive(roots_[i], gradients[i]);
    for (const std::shared_ptr<Meta>& root : roots_) {
      if (!root->producer) finish_use_of(*root);
    }
    for (const std::shared_ptr<Node>& node : order_) visit(*node);
  }

  /// Finds the nodes below the roots, newest first, and how often each leaf and each result is an input.
  void collect() {
    std::vector<std::shared_ptr<Node>> open;
    const auto reach = [&](const std::shared_ptr<Meta>& meta) {
      if (!meta) return;
      if (!meta->producer) {
        ++leaf_uses_[meta.get()];
      } else if (++state_.consumers[meta->producer.get()] == 1) {
        open.push_back(meta->producer);
      }
    };
    for (const std::shared_ptr<Meta>& root : roots_) reach(root);
    while (!open.empty()) {
      std::shared_ptr<Node> node = std::move(open.back());
      open.pop_back();
      for (const std::shared_ptr<Meta>& input : node->inputs()) reach(input);
      order_.push_back(std::move(node));
    }
    for (const auto& [meta, dtype] : wanted_) {
      if (meta->producer) ++state_.consumers[meta->producer.get()];
    }
    std::ranges::sort(order_, [](const auto& a, const auto& b) { return a->sequence() > b->sequence(); });
    if (!adds_to_leaves_) keep_what_is_needed();
    for (const std::shared_ptr<Node>& node : order_) {
      if (!node->released()) continue;
      Arrived nothing;
      node->backward(nothing, state_);  // throws: it was walked before
    }
  }

  /// A gradient in an arena is numbers, without a graph.
  void require_no_slots() const {
    for (const auto& [leaf, uses] : leaf_uses_) {
      if (!leaf->slot.defined()) continue;
      throw UsageError("backward() with create_graph into " + (leaf->name.empty() ? "a parameter" : leaf->name) +
                           ", whose gradient lies in an arena and can have no graph",
                       "Call autograd::grad() with create_graph: it returns the gradients with their graph.");
    }
  }

  /// Leaves out the operations that lead to no wanted gradient.
  void keep_what_is_needed() {
    for (const auto& [meta, dtype] : wanted_) state_.wanted.insert(meta);
    state_.partial = true;
    for (auto node = order_.rbegin(); node != order_.rend(); ++node) {  // inputs before results
      const auto leads_there = [this](const std::shared_ptr<Meta>& input) { return input && state_.needs(*input); };
      if (std::ranges::any_of((*node)->inputs(), leads_there)) state_.needed.insert(node->get());
    }
    std::erase_if(order_, [this](const auto& node) { return !state_.needed.contains(node.get()); });
  }

  /// The record observer's view of a visit.
  class ObservedVisit {
   public:
    explicit ObservedVisit(const Node& node) : observer_(record_observer()), node_(node) {
      if (observer_ != nullptr) observer_->backward_begins(node_);
    }
    ~ObservedVisit() {
      if (observer_ != nullptr) observer_->backward_ends(node_);
    }
    ObservedVisit(const ObservedVisit&) = delete;
    ObservedVisit& operator=(const ObservedVisit&) = delete;

   private:
    RecordObserver* observer_;
    const Node& node_;
  };

  void visit(Node& node) {
    const ObservedVisit observed(node);
    const auto arrived = pending_.find(&node);
    std::vector<Tensor> grads(node.inputs().size());
    if (arrived != pending_.end()) {
      Arrived here{.addend = std::move(arrived->second.front().addend)};
      for (GradientSum& pending : arrived->second) here.gradients.push_back(std::move(pending.sum));
      pending_.erase(arrived);
      // The operation may take what arrived.
      const std::vector<Tensor> gradients = options_.create_graph ? here.gradients : std::vector<Tensor>();
      grads = DetectAnomaly::searched(node.name(), [&] { return node.backward(here, state_); });
      if (options_.create_graph && !node.differentiable()) forbid_second_derivative(node, gradients, grads);
    }
    const std::vector<std::shared_ptr<Meta>>& inputs = node.inputs();
    if (!options_.retain_graph && !options_.create_graph) node.release();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i]) continue;
      if (grads[i].defined() && state_.needs(*inputs[i])) arrive(inputs[i], grads[i]);
      if (!inputs[i]->producer) finish_use_of(*inputs[i]);
    }
  }

  void arrive(const std::shared_ptr<Meta>& meta, const Tensor& grad) {
    const auto wanted = wanted_.find(meta.get());
    if (wanted != wanted_.end()) {
      results_[meta.get()].add(cast(grad, wanted->second), options_.create_graph);
    }
    if (meta->producer) {
      const std::vector<Node::Result>& results = meta->producer->results();
      std::vector<GradientSum>& pending = pending_[meta->producer.get()];
      pending.resize(results.size());
      const Tensor gradient = cast(grad, results[meta->result].dtype);
      if (meta->producer->adds() && !options_.create_graph) {
        pending[meta->result].add_all_but(gradient);
      } else {
        pending[meta->result].add(gradient, options_.create_graph);
      }
    } else if (adds_to_leaves_ && wanted == wanted_.end()) {
      if (meta->hooks) {
        hooked_leaves_[meta.get()].add(grad, options_.create_graph);
      } else {
        add_to_leaf(*meta, grad);
      }
    }
  }

  void add_to_leaf(Meta& leaf, const Tensor& grad) {
    if (leaf.slot.defined() && grad.aliases(leaf.slot)) return;  // the operation wrote it there
    const std::lock_guard lock(leaf.writing);
    if (leaf.slot.defined()) {
      if (enter_slot(leaf, state_.mark)) {
        kernels::accumulate(grad, leaf.slot);
      } else {
        kernels::cast(grad, leaf.slot);
      }
      return;
    }
    // The sum is a tensor of its own: the gradient may be shared with other branches of the graph.
    leaf.grad = leaf.grad.defined() ? sum_of_gradients(leaf.grad, grad) : options_.create_graph ? grad : copy(grad);
  }

  static Tensor copy(const Tensor& tensor) {
    const Tensor out = Tensor::empty(tensor.shape(), tensor.dtype(), tensor.device());
    kernels::cast(tensor, out);
    return out;
  }

  void begin_leaves() {
    if (!adds_to_leaves_) return;
    for (const auto& [leaf, uses] : leaf_uses_) {
      if (!leaf->pass_guard) continue;
      if (!leaf->pass_guard->enter()) leaf->refuse_thread();
      entered_.push_back(leaf->pass_guard);
    }
    for (const auto& [leaf, uses] : leaf_uses_) {
      if (leaf->on_pass_begin) leaf->on_pass_begin();
    }
  }

  void finish_use_of(Meta& leaf) {
    if (--leaf_uses_[&leaf] != 0 || is_part_) return;
    if (leaf.hooks) call_hooks_of(leaf);
    if (adds_to_leaves_ && leaf.on_grad_ready) leaf.on_grad_ready();
  }

  void call_hooks_of(Meta& leaf) {
    if (const auto wanted = results_.find(&leaf); wanted != results_.end()) {
      wanted->second.sum = run_hooks(leaf.hooks, wanted->second.sum);
    } else if (const auto sum = hooked_leaves_.find(&leaf); sum != hooked_leaves_.end()) {
      add_to_leaf(leaf, run_hooks(leaf.hooks, sum->second.sum));
    }
  }

  /// Records each of `grads` as the result of an operation whose own backward throws an error that names `node`.
  static void forbid_second_derivative(const Node& node, const std::vector<Tensor>& gradients,
                                       std::vector<Tensor>& grads) {
    std::vector<std::shared_ptr<Meta>> inputs = node.inputs();
    for (const Tensor& gradient : gradients) {
      if (is_recorded(gradient)) inputs.push_back(gradient.autograd_meta());
    }
    for (Tensor& grad : grads) {
      if (!grad.defined()) continue;
      const Tensor result = grad.detach();
      const auto refuse = [name = std::string(node.name())](const Tensor&,
                                                            const BackwardContext&) -> std::vector<Tensor> {
        throw UsageError("the backward of '" + name + "' cannot be differentiated again");
      };
      Node::add_result(std::make_shared<Node>("once-differentiable", inputs, Backward{.fused = refuse}), result);
      grad = result;
    }
  }

  BackwardOptions options_;
  Wanted wanted_;
  std::vector<std::shared_ptr<Meta>> roots_;
  bool adds_to_leaves_ = true;  ///< otherwise only wanted gradients are computed
  bool is_part_ = false;        ///< of a pass that calls the leaves' hooks
  PassState state_;
  std::vector<std::shared_ptr<Node>> order_;
  std::unordered_map<Meta*, int> leaf_uses_;
  std::unordered_map<const Node*, std::vector<GradientSum>> pending_;  ///< a sum a result
  std::unordered_map<const Meta*, GradientSum> results_;
  std::unordered_map<const Meta*, GradientSum> hooked_leaves_;  ///< of leaves with hooks, which see the whole sum
  std::vector<std::shared_ptr<PassGuard>> entered_;             ///< once for each leaf
};

}  // namespace

void after_backward(std::function<void()> callback, std::uint64_t order) {
  if (callbacks == nullptr) throw UsageError("after_backward outside a backward pass");
  callbacks->push_back({order, std::move(callback)});
}

void backward(const Tensor& output, const Tensor& grad, const BackwardOptions& options) {
  backward(std::vector<Tensor>{output}, {grad}, options);
}

void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& grads, const BackwardOptions& options) {
  std::vector<Tensor> start = initial_gradients(outputs, grads);
  Pass pass(outputs, options, {});
  for (Tensor& gradient : start) gradient = pass.apart_from_slots(gradient);
  if (std::ranges::none_of(grads, &Tensor::defined)) pass.begin_with_ones();
  pass.run(start);
}

std::vector<Tensor> grad(const Tensor& output, const std::vector<Tensor>& inputs, const Tensor& grad_output,
                         const BackwardOptions& options) {
  return grad(std::vector<Tensor>{output}, inputs, {grad_output}, options);
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& grad_outputs, const BackwardOptions& options) {
  const std::vector<Tensor> start = initial_gradients(outputs, grad_outputs);
  Wanted wanted;
  for (const Tensor& input : inputs) {
    if (!input.requires_grad())
      throw UsageError("a gradient with respect to " + describe(input) + ", which needs none");
    wanted.emplace(behind_hooks(input).get(), input.dtype());
  }
  if (wanted.empty()) return {};
  Pass pass(outputs, options, std::move(wanted));
  pass.run(start);
  std::vector<Tensor> grads;
  for (const Tensor& input : inputs) {
    grads.push_back(pass.gradient_of(input));
    if (grads.back().defined() || options.allow_unused) continue;
    const std::string& name = input.autograd_meta()->name;
    throw UsageError("no output of grad() depends on its input " + std::to_string(grads.size() - 1) + ", " +
                         (name.empty() ? "" : name + ", ") + describe(input),
                     "Leave it out, or say allow_unused: its gradient is then an undefined tensor.");
  }
  return grads;
}

std::vector<Tensor> walk_again(const BackwardContext& context, const Tensor& output, const Tensor& grad,
                               const std::vector<Tensor>& inputs) {
  std::vector<Tensor> grads(inputs.size());
  if (!output.requires_grad()) return grads;
  const std::vector<std::shared_ptr<Meta>>& places = context.node_.inputs();
  Wanted wanted;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!places.at(i) || !context.needs(i)) continue;
    const std::shared_ptr<Meta>& meta = inputs[i].autograd_meta();
    // A leaf's hooks are called by the pass, with what comes from elsewhere, too.
    if (context.pass_.partial || meta != places[i] || meta->hooks) wanted.emplace(meta.get(), inputs[i].dtype());
  }
  Pass pass(output, wanted, context.pass_);
  pass.require_within(context.node_.sequence(), inputs);
  pass.run({grad});
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined() && wanted.contains(inputs[i].autograd_meta().get())) grads[i] = pass.gradient_of(inputs[i]);
  }
  return grads;
}

}  // namespace lockstep::autograd
