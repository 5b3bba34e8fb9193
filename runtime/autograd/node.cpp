// SPDX-License-Identifier: Apache-2.0
#include "runtime/autograd/node.h"

#include <algorithm>
#include <atomic>

#include "runtime/autograd/grad_mode.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/autograd/scale_mark.h"
#include "runtime/base/error.h"

namespace lockstep::autograd {

namespace {
std::atomic<std::uint64_t> next_sequence{2};
constexpr std::uint64_t kSequenceStep = 2;  ///< leaves a number for Node::behind()
thread_local RecordObserver* this_threads_observer = nullptr;
}  // namespace

RecordObserver* observe_records(RecordObserver* observer) { return std::exchange(this_threads_observer, observer); }
RecordObserver* record_observer() { return this_threads_observer; }

Meta& meta_of(const Tensor& tensor) {
  if (!tensor.autograd_meta()) tensor.set_autograd_meta(std::make_shared<Meta>());
  return *tensor.autograd_meta();
}

void Meta::move_slot(const Tensor& to) {
  slot = to;
  if (!shown.defined()) return;
  shown.bump_version();  // a graph that needs the value is told: it has the old memory
  const auto offset = static_cast<std::byte*>(to.data()) - static_cast<std::byte*>(to.storage().data());
  shown.rebind(to.storage(), static_cast<std::size_t>(offset), to.dtype());
  shown.share_version(to);
}

void Meta::keep_shown() {
  const Tensor gradient = std::exchange(shown, {});
  if (!gradient.defined()) return;
  gradient.bump_version();  // a graph that needs the value in the slot is told
  if (gradient.handles() == 1) return;
  const Tensor own = Tensor::empty(gradient.shape(), gradient.dtype(), gradient.device());
  own.copy_from(gradient);
  gradient.rebind(own.storage(), 0, own.dtype());
}

bool PassGuard::enter() {
  const std::lock_guard lock(mutex_);
  if (passes_ > 0 && thread_ != std::this_thread::get_id()) return false;
  thread_ = std::this_thread::get_id();
  ++passes_;
  return true;
}

void PassGuard::leave() {
  const std::lock_guard lock(mutex_);
  --passes_;
}

void Meta::refuse_thread() const {
  throw UsageError("a backward pass into " + (name.empty() ? "a parameter" : name) +
                       " on one thread while another thread's is in its model, whose gradients are being reduced",
                   "Run the backward passes of a model under DistributedDataParallel one after another, or give each "
                   "thread a replica (step::Replicas).");
}

void Meta::refuse_gradient() const {
  throw UsageError("a backward pass after unscale_(): it would add a scaled gradient to the unscaled one of " +
                       (name.empty() ? "a parameter" : name),
                   "Call unscale_() behind the last backward pass of a step, and zero_grad() before the next one.");
}

void Meta::refuse_scaler() const {
  throw UsageError("the gradient of " + (name.empty() ? "a parameter" : name) +
                       " would be the sum of gradients that two GradScalers have scaled",
                   "Scale all losses of an optimizer by one scaler, or give each loss an optimizer of its own.");
}

bool is_recorded(const Tensor& tensor) { return grad_enabled() && tensor.defined() && tensor.requires_grad(); }

const Tensor& BackwardContext::saved(const SavedTensor& tensor) const { return tensor.take(node_.name()); }

Tensor BackwardContext::result(const SavedTensor& tensor, std::size_t i) const {
  const Tensor result = saved(tensor).detach();
  result.set_autograd_meta(node_.meta_of_result(i));
  return result;
}

bool BackwardContext::needs(std::size_t i) const {
  const std::shared_ptr<Meta>& meta = node_.inputs().at(i);
  return meta != nullptr && pass_.needs(*meta);
}

std::array<Tensor, 2> BackwardContext::take_gradient() const {
  return {std::move(arrived_.gradients.front()), std::move(arrived_.addend)};
}

GradTarget BackwardContext::target(std::size_t i, const Tensor& input, TargetDType dtype) const {
  if (!needs(i)) return {};
  Meta* meta = node_.inputs().at(i).get();
  const Tensor& slot = meta->slot;
  const bool writable = slot.defined() && (dtype == TargetDType::kAny || slot.dtype() == DType::kFloat32 ||
                                           slot.dtype() == input.dtype());
  // While another thread writes to the slot, the gradient gets a tensor of its own, which the pass adds afterwards.
  if (!writable || !pass_.into_slots || !take_slot(*meta)) {
    return {Tensor::empty(input.shape(), input.dtype(), input.device()), false};
  }
  return {slot, enter_slot(*meta, pass_.mark)};
}

bool BackwardContext::take_slot(Meta& leaf) const {
  const auto holds = [&leaf](const auto& lock) { return lock.mutex() == &leaf.writing; };
  if (std::ranges::any_of(slots_, holds)) return true;  // an input twice
  std::unique_lock lock(leaf.writing, std::try_to_lock);
  if (!lock) return false;
  slots_.push_back(std::move(lock));
  return true;
}

void BackwardContext::note_scaler(std::uint64_t mark) const {
  const std::uint64_t other = scaler_in(pass_.mark);
  if (other != 0 && scaler_in(mark) != 0 && other != scaler_in(mark)) {
    throw UsageError("a backward pass through losses that two GradScalers have scaled",
                     "Call backward() for each scaler's losses.");
  }
  pass_.mark = mark_of_sum(pass_.mark, mark);
}

std::optional<ActivationDerivative> BackwardContext::take_derivative(std::size_t i) const {
  const Meta* meta = node_.inputs().at(i).get();
  if (pass_.recorded || meta == nullptr || !meta->producer) return std::nullopt;
  const Node* producer = meta->producer.get();
  if (producer->derivative().activation == kernels::Activation::kNone) return std::nullopt;
  const auto consumers = pass_.consumers.find(producer);
  if (consumers == pass_.consumers.end() || consumers->second != 1) return std::nullopt;
  producer->derivative().at.take(producer->name());
  pass_.multiplied.insert(producer);
  return producer->derivative();
}

Node::Node(std::string_view name, std::vector<std::shared_ptr<Meta>> inputs, Backward backward, OnLosses on_losses)
    : name_(name),
      sequence_(next_sequence.fetch_add(kSequenceStep, std::memory_order_relaxed)),
      inputs_(std::move(inputs)),
      backward_(std::move(backward)),
      on_losses_(on_losses) {}

std::shared_ptr<Node> Node::behind(const std::shared_ptr<Meta>& place, std::string_view name, Backward backward) {
  const auto node = std::make_shared<Node>(name, std::vector{place}, std::move(backward), OnLosses::kAdds);
  node->sequence_ = place->producer->sequence() + 1;
  node->stays_ = true;
  return node;
}

void Node::add_result(const std::shared_ptr<Node>& node, const Tensor& tensor) {
  Meta& meta = meta_of(tensor);
  meta.requires_grad = is_floating(tensor.dtype());
  meta.producer = node;
  meta.result = node->results_.size();
  meta.hooks = nullptr;
  node->results_.push_back({tensor.autograd_meta(), tensor.dtype()});
}

std::shared_ptr<Meta> Node::meta_of_result(std::size_t i) {
  Result& result = results_.at(i);
  std::shared_ptr<Meta> meta = result.meta.lock();
  if (!meta) {
    meta = std::make_shared<Meta>();
    meta->requires_grad = true;
    meta->producer = shared_from_this();
    meta->result = i;
    result.meta = meta;
  }
  return meta;
}

Node::~Node() {
  // The list keeps the producers alive while the saved tensors, which may own them too, are dropped.
  std::vector<std::shared_ptr<Node>> orphans;
  const auto empty = [&orphans](Node& node) {
    for (const std::shared_ptr<Meta>& input : node.inputs_) {
      if (input && input->producer) orphans.push_back(input->producer);
    }
    node.stays_ = false;
    node.release();
    node.inputs_.clear();
  };
  empty(*this);
  while (!orphans.empty()) {
    const std::shared_ptr<Node> node = std::move(orphans.back());
    orphans.pop_back();
    if (node.use_count() == 1) empty(*node);
  }
}

std::vector<Tensor> Node::backward(Arrived& arrived, PassState& pass) {
  if (released()) {
    throw UsageError("backward through '" + std::string(name_) + "' a second time: its saved tensors are gone",
                     "Keep the graph in the first backward pass, or run the forward pass again.");
  }
  const bool by_operations = backward_.recorded && (pass.recorded || !backward_.fused);
  const BackwardFunction& function = by_operations ? backward_.recorded : backward_.fused;
  const ScopedAutocastState as_in_forward(autocast_);
  std::vector<Tensor> grads = function(arrived.gradients.front(), BackwardContext(*this, arrived, pass));
  if (grads.size() != inputs_.size()) {
    throw UsageError("the backward of '" + std::string(name_) + "' returned " + std::to_string(grads.size()) +
                     " gradients for " + std::to_string(inputs_.size()) + " inputs");
  }
  return grads;
}

void Node::release() {
  if (stays_) return;
  released_ = true;
  backward_ = {};
}

namespace {

void record_results(std::span<const Tensor> results, std::string_view name, const std::vector<Tensor>& inputs,
                    OnLosses on_losses, Backward backward) {
  if (RecordObserver* const observer = record_observer()) {
    observer->recorded(name, {results.begin(), results.end()}, inputs);
  }
  const auto is_differentiable = [](const Tensor& result) { return is_floating(result.dtype()); };
  if (std::ranges::none_of(inputs, is_recorded) || std::ranges::none_of(results, is_differentiable)) return;
  std::vector<std::shared_ptr<Meta>> metas;
  metas.reserve(inputs.size());
  for (const Tensor& input : inputs) metas.push_back(is_recorded(input) ? input.autograd_meta() : nullptr);
  const auto node = std::make_shared<Node>(name, std::move(metas), std::move(backward), on_losses);
  for (const Tensor& result : results) Node::add_result(node, result);
  if (RecordObserver* const observer = record_observer()) observer->placed(*node);
}

}  // namespace

void record(const Tensor& result, std::string_view name, const std::vector<Tensor>& inputs, Backward backward) {
  record_results({&result, 1}, name, inputs, OnLosses::kMakes, std::move(backward));
}

void record(const Tensor& result, std::string_view name, const std::vector<Tensor>& inputs, OnLosses on_losses,
            Backward backward) {
  record_results({&result, 1}, name, inputs, on_losses, std::move(backward));
}

void record(const std::vector<Tensor>& results, std::string_view name, const std::vector<Tensor>& inputs,
            Backward backward) {
  record_results(results, name, inputs, OnLosses::kMakes, std::move(backward));
}

void record(const std::vector<Tensor>& results, std::string_view name, const std::vector<Tensor>& inputs,
            OnLosses on_losses, Backward backward) {
  record_results(results, name, inputs, on_losses, std::move(backward));
}

}  // namespace lockstep::autograd
