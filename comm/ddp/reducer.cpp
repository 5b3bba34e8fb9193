// SPDX-License-Identifier: Apache-2.0
#include "comm/ddp/reducer.h"

#include <algorithm>
#include <atomic>

#include "runtime/autograd/engine.h"
#include "runtime/autograd/meta.h"
#include "runtime/base/error.h"
#include "runtime/kernels/arena.h"
#include "runtime/kernels/assign.h"
#include "runtime/tensor/memory.h"
#include "runtime/tensor/trace_range.h"

namespace lockstep::comm {

namespace {

std::uint64_t next_order() {
  static std::atomic<std::uint64_t> next{0};
  return next++;
}

}  // namespace

Reducer::Reducer(std::shared_ptr<nn::Arena> arena, std::shared_ptr<Communicator> communicator,
                 const DdpOptions& options)
    : arena_(std::move(arena)),
      communicator_(std::move(communicator)),
      order_(next_order()),
      average_(options.gradient_average),
      predivide_(static_cast<float>(options.gradient_predivide_factor)),
      find_unused_(options.find_unused),
      delay_(options.delay_reduction),
      buckets_(plan_buckets(*arena_, options)),
      segments_(buckets_.size()),
      missing_(buckets_.size()),
      events_(buckets_.size()),
      used_(find_unused_ ? flags() : Tensor()),
      local_flags_(flags()),
      found_(flags()),
      clean_(flags()) {
  for (int i = 0; i < (alone() ? 1 : options.reduction_streams); ++i) lanes_.push_back(make_lane(i, options));
  if (plan()) plan_factor_ = Tensor::zeros({1}, DType::kFloat32, arena_->grads().device());
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    for (int i = buckets_[b].first_slot; i < buckets_[b].last_slot; ++i) {
      const nn::Arena::Slot& slot = arena_->slots()[static_cast<std::size_t>(i)];
      segments_[b].push_back({.begin = slot.begin, .end = slot.end});
    }
  }
  // Last: the parameters would keep the hooks of a reducer whose construction failed.
  const auto guard = std::make_shared<autograd::PassGuard>();
  for (std::size_t i = 0; i < arena_->slots().size(); ++i) {
    autograd::Meta& meta = autograd::meta_of(arena_->slots()[i].parameter.tensor);
    meta.pass_guard = guard;
    meta.on_pass_begin = [this] { begin_pass(); };
    meta.on_grad_ready = [this, i] { gradient_ready(i); };
  }
}

Reducer::Lane Reducer::make_lane(int number, const DdpOptions& options) const {
  const Device device = arena_->grads().device();
  // A lone rank has nothing to overlap: its scaling runs where it stands.
  if (alone()) return {communicator_, Stream::current(device), {}};
  std::string name = "buckets";
  if (number > 0) name.append(" ").append(std::to_string(number + 1));
  Lane lane{communicator_->duplicate(name), Stream::create(device, name), {}};
  if (options.reduce_in_float32 && is_reduced(arena_->wire().dtype())) {
    std::int64_t longest = 0;
    for (const Bucket& bucket : buckets_) longest = std::max(longest, bucket.end - bucket.begin);
    const MemoryScope purpose(MemoryPurpose::kWorkspaces);
    const Storage memory = communicator_->allocate(static_cast<std::size_t>(longest) * sizeof(float));
    lane.widened = Tensor::view(memory, 0, {longest}, DType::kFloat32);
  }
  return lane;
}

Tensor Reducer::flags() const {
  if (alone()) return {};
  return Tensor::zeros({static_cast<std::int64_t>(arena_->slots().size())}, DType::kFloat32, arena_->grads().device());
}

Reducer::~Reducer() {
  for (const nn::Arena::Slot& slot : arena_->slots()) {
    autograd::Meta& meta = autograd::meta_of(slot.parameter.tensor);
    meta.pass_guard = nullptr;
    meta.on_pass_begin = nullptr;
    meta.on_grad_ready = nullptr;
  }
}

bool Reducer::has_gradient(std::size_t slot) const {
  return autograd::meta_of(arena_->slots()[slot].parameter.tensor).slot_gradients > 0;
}

bool Reducer::expects_gradient(std::size_t slot) const {
  return arena_->slots()[slot].parameter.tensor.requires_grad();
}

void Reducer::contribute_zero(std::size_t slot) {
  autograd::Meta& meta = autograd::meta_of(arena_->slots()[slot].parameter.tensor);
  if (meta.slot_filled) return;
  kernels::fill(meta.slot, 0.0);
  meta.slot_filled = true;
}

void Reducer::begin_pass() {
  if (!pass_.expired()) return;  // told by another parameter
  // Sums that are rounded to the wire again would lose what unscale_() made of them.
  arena_->require_scaled();
  if (on_begin_) on_begin_();
  // The pass keeps the token with its callback: one that an error cuts short is not taken for the next.
  const auto token = std::make_shared<int>();
  autograd::after_backward([this, token] { finish_pass(); }, order_);
  pass_ = token;
  reducing_ = enabled_;
  const bool adds = std::ranges::any_of(arena_->slots(), [](const nn::Arena::Slot& slot) {
    return autograd::meta_of(slot.parameter.tensor).slot_filled;
  });
  if (!adds) pending_factor_.reset();
  require_one_factor();
  // More gradients come on top of these, or these on top of others.
  if (!reducing_ || adds) arena_->widen();
  another_ = arena_->reduced();
  if (another_ && !taken_back_) take_back_reduced();
  taken_back_ = another_;
  pending_factor_ = factor_;
  if (reducing_) begin_reduction();
}

void Reducer::require_one_factor() const {
  if (!pending_factor_ || *pending_factor_ == factor_) return;
  throw UsageError(
      "the gradients of the step's backward passes are weighed in two ways, by " + std::to_string(*pending_factor_) +
          " and by " + std::to_string(factor_) + ": their sum cannot be reduced",
      "Give every micro-batch of a step the same step_samples, and all of them to forward(batch), or none.");
}

std::optional<ReductionPlan> Reducer::plan() const {
  // Widened gradients need no plan: the all_reduce multiplies them in float32. A hook has them as they are.
  if (alone() || communication_hook_ || lanes_.front().widened.defined()) return std::nullopt;
  const ReduceOp op = average_ && predivide_ == 1.0f ? ReduceOp::kAverage : ReduceOp::kSum;
  return plan_of_sum(*lanes_.front().communicator, arena_->wire().dtype(), op, factor_ / predivide_);
}

void Reducer::begin_reduction() {
  plan_ = plan();
  if (plan_ && plan_->factor != 1.0) kernels::fill(plan_factor_, plan_->factor);
  next_ = 0;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    missing_[b] = 0;
    for (int i = buckets_[b].first_slot; i < buckets_[b].last_slot; ++i) {
      const auto slot = static_cast<std::size_t>(i);
      if (expects_gradient(slot)) {
        ++missing_[b];
      } else {
        contribute_zero(slot);
      }
    }
  }
}

void Reducer::take_back_reduced() {
  // The sum that an earlier pass has reduced is the same on every rank. The next reduction multiplies it by `weight`,
  // so it is divided by that first, before a pass adds gradients of this rank. Its own bad values are remembered: they
  // are not those of the next pass.
  const Tensor& grads = arena_->grads();
  const kernels::ArenaSteps& arena_steps = kernels::ArenaSteps::on(grads.device());
  const double weight = static_cast<double>(factor_) * (average_ ? 1.0 : static_cast<double>(communicator_->size()));
  if (weight != 1.0) kernels::scale(grads, 1.0 / weight, nullptr, grads);
  if (alone()) return;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const Bucket& bucket = buckets_[b];
    arena_steps.check_finite(grads.rows(bucket.begin, bucket.end), bucket.begin, segments_[b],
                             found_.rows(bucket.first_slot, bucket.last_slot), {});
  }
  kernels::fill(clean_, 1.0);
  kernels::scale(found_, -1.0, nullptr, found_);
  kernels::accumulate(found_, clean_);
}

void Reducer::gradient_ready(std::size_t slot) {
  // The hook fires for every parameter in the graph, also where no gradient came through.
  if (!has_gradient(slot)) return;
  if (on_gradient_) on_gradient_(slot);
  if (!reducing_) return;
  for (std::size_t b = next_; b < buckets_.size(); ++b) {
    if (static_cast<int>(slot) < buckets_[b].last_slot) {
      --missing_[b];
      break;
    }
  }
  launch_full_buckets();
}

void Reducer::launch_full_buckets() {
  // In order, so that every rank's collectives agree; the last one waits for the end of the pass.
  while (!delay_ && next_ + 1 < buckets_.size() && missing_[next_] == 0) launch(next_++);
}

void Reducer::launch(std::size_t b) {
  const TraceRange trace("reduce a bucket");
  const Bucket& bucket = buckets_[b];
  if (!alone()) load(b);
  const Tensor grads = (alone() ? arena_->grads() : arena_->wire()).rows(bucket.begin, bucket.end);
  const Lane& lane = lanes_[b % lanes_.size()];
  lane.stream.wait(Stream::current(grads.device()).record());
  if (lane.widened.defined()) {
    const Tensor widened = lane.widened.rows(0, grads.numel());
    lane.stream.enqueue([grads, widened] { kernels::cast(grads, widened); });
    reduce(b, widened, lane);
    lane.stream.enqueue([grads, widened] { kernels::cast(widened, grads); });
  } else {
    reduce(b, grads, lane);
  }
  events_[b] = lane.stream.record();
}

void Reducer::set_communication_hook(CommunicationHook hook) {
  if (!pass_.expired())
    throw UsageError("a communication hook is set within a backward pass", "Set it between two steps.");
  communication_hook_ = std::move(hook);
}

void Reducer::reduce(std::size_t b, const Tensor& grads, const Lane& lane) const {
  if (!communication_hook_) return all_reduce(grads, lane);
  const Bucket& bucket = buckets_[b];
  const auto first = static_cast<std::size_t>(bucket.first_slot), last = static_cast<std::size_t>(bucket.last_slot);
  const double ranks = average_ ? static_cast<double>(communicator_->size()) : 1.0;
  const auto call = [&] {
    communication_hook_({.gradients = grads,
                         .weight = static_cast<double>(factor_) / ranks,
                         .number = static_cast<int>(b),
                         .count = static_cast<int>(buckets_.size()),
                         .slots = std::span(arena_->slots()).subspan(first, last - first),
                         .communicator = *lane.communicator,
                         .stream = lane.stream,
                         .all_reduce = [this, grads, &lane] { all_reduce(grads, lane); }});
  };
  // On a GPU, whose streams run work at once, with the lane's as the current one: tensors that the hook makes are of
  // it.
  grads.device() == kCpu ? call() : lane.stream.enqueue(call);
}

void Reducer::all_reduce(const Tensor& grads, const Lane& lane) const {
  const bool plain = predivide_ == 1.0f;
  const ReduceOp op = average_ && plain && !plan_ ? ReduceOp::kAverage : ReduceOp::kSum;
  lane.communicator->all_reduce(grads, op, plan_ ? 1.0f : factor_ / predivide_, lane.stream);
  if (plain) return;
  const double world = average_ ? static_cast<double>(communicator_->size()) : 1.0;
  const double rest = static_cast<double>(predivide_) / world;
  lane.stream.enqueue([grads, rest] { kernels::scale(grads, rest, nullptr, grads); });
}

void Reducer::load(std::size_t b) {
  // Before they are reduced: the only moment at which a bad value still tells whose it is.
  const Bucket& bucket = buckets_[b];
  const Tensor held = arena_->grads().rows(bucket.begin, bucket.end);
  const Tensor wire = arena_->wire().rows(bucket.begin, bucket.end);
  const Tensor flags = (another_ ? found_ : local_flags_).rows(bucket.first_slot, bucket.last_slot);
  const kernels::ArenaSteps& arena_steps = kernels::ArenaSteps::on(held.device());
  const bool multiplies = plan_ && plan_->factor != 1.0;
  if (held.aliases(wire) && !multiplies) {
    arena_steps.check_finite(held, bucket.begin, segments_[b], flags, {});
  } else {
    // A sum that the wire's dtype cannot hold is found as well.
    const float* const factor = multiplies ? static_cast<const float*>(plan_factor_.data()) : nullptr;
    arena_steps.rescale(held, factor, 0.0f, bucket.begin, segments_[b], wire, flags);
  }
}

void Reducer::finish_pass() {
  if (!reducing_) return;
  const TraceRange trace("finish the reduction");
  require_all_gradients();
  for (std::size_t slot = 0; slot < arena_->slots().size(); ++slot) contribute_zero(slot);
  while (next_ < buckets_.size()) launch(next_++);
  const Stream here = Stream::current(arena_->grads().device());
  if (used_.defined()) {
    arena_->write_own_gradients(used_);
    const Lane& lane = lanes_.front();
    lane.stream.wait(here.record());
    lane.communicator->all_reduce(used_, ReduceOp::kMax, 1.0f, lane.stream);
    communicator_->wait_for(lane.stream.record(), here);
  }
  for (const Event& event : events_) communicator_->wait_for(event, here);
  if (!alone()) arena_->hold(arena_->wire());
  if (!alone() && another_) {
    kernels::multiply(found_, clean_, found_);
    kernels::accumulate(found_, local_flags_);
  }
  arena_->note_reduction(local_flags_, used_);
  taken_back_ = false;
  pending_factor_.reset();
}

void Reducer::require_all_gradients() {
  std::string names;
  for (std::size_t i = 0; i < arena_->slots().size(); ++i) {
    // A parameter that an earlier micro-batch reached holds a gradient even when this pass left it out.
    if (expects_gradient(i) && !has_gradient(i))
      names += (names.empty() ? "" : ", ") + arena_->slots()[i].parameter.name;
  }
  if (!names.empty() && !find_unused_) {
    throw UsageError("no gradient arrived at " + names + " on rank " + std::to_string(communicator_->rank()) +
                         " in this backward pass",
                     "Every parameter must take part in the loss on every rank; set find_unused where one "
                     "does not on purpose.");
  }
}

}  // namespace lockstep::comm
