// SPDX-License-Identifier: Apache-2.0
#include "comm/ddp/reducer.h"

#include "runtime/autograd/engine.h"
#include "runtime/autograd/meta.h"
#include "runtime/kernels/backend.h"
#include "runtime/tensor/error.h"

namespace lockstep::comm {

Reducer::Reducer(std::shared_ptr<nn::Arena> arena, std::shared_ptr<Communicator> communicator, const job::Comm& config)
    : arena_(std::move(arena)),
      communicator_(std::move(communicator)),
      average_(config.gradient_average()),
      predivide_(static_cast<float>(config.gradient_predivide_factor())),
      find_unused_(config.find_unused()),
      buckets_(plan_buckets(*arena_, config)),
      // A lone rank has nothing to overlap: its scaling runs where it stands.
      stream_(communicator_->size() > 1 ? Stream::create(arena_->grads().device(), "buckets")
                                        : Stream::current(arena_->grads().device())),
      missing_(buckets_.size()),
      events_(buckets_.size()),
      local_flags_(communicator_->size() > 1 ? Tensor::zeros({static_cast<std::int64_t>(arena_->slots().size())},
                                                             DType::kFloat32, arena_->grads().device())
                                             : Tensor()) {
  for (std::size_t i = 0; i < arena_->slots().size(); ++i) {
    autograd::meta_of(arena_->slots()[i].parameter.tensor).on_grad_ready = [this, i] { gradient_ready(i); };
  }
}

Reducer::~Reducer() {
  for (const nn::Arena::Slot& slot : arena_->slots()) {
    autograd::meta_of(slot.parameter.tensor).on_grad_ready = nullptr;
  }
}

bool Reducer::has_gradient(std::size_t slot) const {
  return autograd::meta_of(arena_->slots()[slot].parameter.tensor).slot_filled;
}

bool Reducer::expects_gradient(std::size_t slot) const {
  return arena_->slots()[slot].parameter.tensor.requires_grad();
}

void Reducer::begin_pass() {
  // The pass keeps the token with its callback: one that an error cuts short is not taken for the next.
  const auto token = std::make_shared<int>();
  autograd::after_backward([this, token] { finish_pass(); });
  pass_ = token;
  next_ = 0;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    missing_[b] = 0;
    for (int slot = buckets_[b].first_slot; slot < buckets_[b].last_slot; ++slot) {
      missing_[b] += expects_gradient(static_cast<std::size_t>(slot)) ? 1 : 0;
    }
  }
}

void Reducer::gradient_ready(std::size_t slot) {
  if (enabled_ && pass_.expired()) begin_pass();
  // The hook fires for every parameter in the graph, also where no gradient came through.
  if (!has_gradient(slot)) return;
  if (on_gradient_) on_gradient_(slot);
  if (!enabled_) return;
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
  while (next_ + 1 < buckets_.size() && missing_[next_] == 0) launch(next_++);
}

void Reducer::launch(std::size_t b) {
  const Bucket& bucket = buckets_[b];
  const Tensor grads = arena_->grads().rows(bucket.begin, bucket.end);
  if (local_flags_.defined()) check_local(bucket, grads);
  const float world = static_cast<float>(communicator_->size());
  const bool plain = predivide_ == 1.0f;
  stream_.wait(Stream::current(grads.device()).record());
  communicator_->all_reduce(grads, average_ && plain ? ReduceOp::kAverage : ReduceOp::kSum, factor_ / predivide_,
                            stream_);
  if (!plain) {
    const double rest = static_cast<double>(predivide_) / (average_ ? static_cast<double>(world) : 1.0);
    stream_.enqueue([grads, rest] { kernels::backend(grads.device()).scale(grads, rest, nullptr, grads); });
  }
  events_[b] = stream_.record();
}

void Reducer::check_local(const Bucket& bucket, const Tensor& grads) {
  // Before they are reduced: the only moment at which a bad value still tells whose it is.
  std::vector<kernels::ArenaSegment> segments;
  for (int i = bucket.first_slot; i < bucket.last_slot; ++i) {
    const nn::Arena::Slot& slot = arena_->slots()[static_cast<std::size_t>(i)];
    segments.push_back({slot.begin, slot.end, 1.0f, 0.0f});
  }
  kernels::backend(grads.device())
      .check_finite(grads, bucket.begin, segments, local_flags_.rows(bucket.first_slot, bucket.last_slot), {});
}

void Reducer::finish_pass() {
  require_all_gradients();
  while (next_ < buckets_.size()) launch(next_++);
  const Stream here = Stream::current(arena_->grads().device());
  for (const Event& event : events_) here.wait(event);
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
                     "Every parameter must take part in the loss on every rank; set comm.find_unused: true where one "
                     "does not on purpose.");
  }
  arena_->zero_missing_grads();
}

}  // namespace lockstep::comm
