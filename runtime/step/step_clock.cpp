// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/step_clock.h"

#include <numeric>
#include <utility>

#include "runtime/autograd/grad_mode.h"
#include "runtime/autograd/node.h"
#include "runtime/base/error.h"
#include "runtime/kernels/implementation.h"
#include "runtime/nn/layer_scope.h"
#include "runtime/ops/operation_options.h"
#include "runtime/tensor/stream.h"

namespace lockstep::step {

using std::chrono::nanoseconds;

namespace {

/// A causal mask leaves out half of the scores.
constexpr double kCausalShare = 0.5;

void note(OperationTimes::Pass& pass, const ops::OperationWork& work) {
  ++pass.calls;
  pass.work += work;
}

void take(OperationTimes::Pass& pass, const char* implementation) {
  if (implementation != nullptr) pass.implementation = implementation;
}

}  // namespace

StepPart part_of(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return StepPart::kForward;
    case Phase::kBackward:
      return StepPart::kBackward;
    case Phase::kUpdate:
      return StepPart::kUpdate;
  }
  throw UsageError("a phase without a part");
}

std::string_view name_of(StepPart part) {
  switch (part) {
    case StepPart::kData:
      return "data";
    case StepPart::kForward:
      return "forward";
    case StepPart::kBackward:
      return "backward";
    case StepPart::kCommunication:
      return "communication";
    case StepPart::kUpdate:
      return "optimizer";
    case StepPart::kRest:
      return "rest";
  }
  throw UsageError("a part of a step without a name");
}

nanoseconds StepTimes::total() const { return std::accumulate(parts.begin(), parts.end(), nanoseconds(0)); }

std::size_t StepClock::Hash::operator()(const Key& key) const {
  const auto mix = [](std::size_t hash, std::size_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 32);
  };
  const std::size_t hash =
      mix(mix(0, reinterpret_cast<std::size_t>(key.name)), reinterpret_cast<std::size_t>(key.layer));
  return mix(hash, 2 * static_cast<std::size_t>(key.dtype) + (key.again ? 1 : 0));
}

StepClock::StepClock(Device device, Now now, Sink sink)
    : device_(device), now_(std::move(now)), sink_(std::move(sink)) {}

StepClock::~StepClock() {
  if (running_) detach();
}

void StepClock::begin() {
  if (running_) throw UsageError("a StepClock that begins a step within a step", "Call end() before.");
  if (device_ != kCpu) {
    stream_ = Stream::current(device_);
    stream_->synchronize();
    begin_.emplace(*stream_);
  }
  running_ = true;
  outer_records_ = autograd::observe_records(this);
  outer_ranges_ = observe_ranges(this);
  placed_.clear();
  open_.clear();
  looks_.clear();
  failure_ = nullptr;
  time_of_look_.reset();
  latest_ = {};
  times_ = {};
  loose_ = nanoseconds(0);
  phase_ = StepPart::kRest;
  kernels::take_implementation();
  last_ = loose_begin_ = phase_begin_ = now_();
}

StepTimes StepClock::end() {
  look([this] { enter(StepPart::kRest); });
  detach();
  catch_up();
  open_.clear();
  return times_;
}

void StepClock::detach() {
  running_ = false;
  autograd::observe_records(outer_records_);
  observe_ranges(outer_ranges_);
}

template <class Account>
void StepClock::look(Account account) {
  if (device_ == kCpu) return account();
  if (failure_) return;
  try {
    looks_.push_back({gpu::Moment(*stream_), {std::move(account)}});
  } catch (...) {
    failure_ = std::current_exception();
  }
}

template <class Account>
void StepClock::after_look(Account account) {
  if (device_ == kCpu) return account();
  if (!failure_) looks_.back().accounts.push_back(std::move(account));
}

void StepClock::catch_up() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  if (looks_.empty()) return;
  stream_->synchronize();
  time_of_look_ = last_;
  const gpu::Moment* before = &*begin_;
  for (const Look& look : looks_) {
    *time_of_look_ += look.moment.since(*before);
    before = &look.moment;
    for (const auto& account : look.accounts) account();
  }
  time_of_look_.reset();
  looks_.clear();
}

void StepClock::phase_begins(Phase phase, std::uint64_t, std::uint32_t) {
  if (running_) look([this, phase] { enter(part_of(phase)); });
}

void StepClock::step_ends(std::uint64_t) {
  if (running_) look([this] { enter(StepPart::kRest); });
}

nanoseconds StepClock::lap() {
  const nanoseconds now = time_of_look_ ? *time_of_look_ : now_(), passed = now - std::exchange(last_, now);
  times_.parts[static_cast<std::size_t>(part())] += passed;
  return passed;
}

void StepClock::close_lap() {
  const nanoseconds passed = lap();
  (open_.empty() || in_work() ? loose_ : open_.back().pass->time) += passed;
}

void StepClock::settle_loose() {
  const nanoseconds loose = std::exchange(loose_, nanoseconds(0));
  loose_begin_ = last_;
  if (in_work()) {
    open_.back().pass->time += loose;
  } else if (phase_ == StepPart::kUpdate) {
    range("optimizer").time += loose;
  }
}

void StepClock::enter(StepPart phase) {
  close_lap();
  settle_loose();
  tell({.name = name_of(phase_), .category = "phase", .begin = phase_begin_, .end = last_});
  phase_ = phase;
  phase_begin_ = last_;
  if (phase == StepPart::kUpdate) ++range("optimizer").calls;
}

void StepClock::open(const Open& opened, bool counts_apart) {
  close_lap();
  if (counts_apart) settle_loose();
  open_.push_back(opened);
  open_.back().begin = last_;
}

void StepClock::close_innermost() {
  close_lap();
  if (in_work()) settle_loose();
  const Open& closed = open_.back();
  tell({.name = closed.name,
        .category = closed.category,
        .is_backward = closed.is_visit,
        .begin = closed.begin,
        .end = last_});
  open_.pop_back();
}

void StepClock::recorded(std::string_view name, const std::vector<Tensor>& results, const std::vector<Tensor>& inputs) {
  const auto gather = [&] {
    return Gathered{.name = name,
                    .layer = nn::LayerScope::current(),
                    .dtype = results.front().dtype(),
                    .forward = ops::forward_work(name, results, inputs),
                    .backward = ops::backward_work(name, results, inputs),
                    .implementation = kernels::take_implementation()};
  };
  const bool recording = autograd::grad_enabled();
  if (device_ == kCpu) return count_record(recording, gather);
  look([this, recording, gathered = gather()] { count_record(recording, [&] { return gathered; }); });
}

template <class Gather>
void StepClock::count_record(bool recording, Gather gather) {
  latest_ = {};
  latest_placed_ = nullptr;
  // In a backward pass the forward pass of a checkpoint is recorded again. Without a graph, it is an operation of which
  // a backward function is made: a part of that.
  const bool again = in_visit() && recording;
  // Outside a forward pass views of gradients and sums are recorded, too, which are nobody's operations.
  if (phase_ != StepPart::kForward && !again) return;
  const Gathered of = gather();
  latest_ = {.operation = &at(of.name, of.layer, of.dtype, false), .forward = of.forward, .backward = of.backward};
  Pass& pass = (again ? at(of.name, of.layer, of.dtype, true) : *latest_.operation).forward;
  latest_.forward_pass = &pass;
  const nanoseconds begin = again ? last_ : loose_begin_;
  pass.time += lap() + std::exchange(loose_, nanoseconds(0));
  loose_begin_ = last_;
  tell({.name = of.name, .category = "operation", .begin = begin, .end = last_});
  note(pass, latest_.forward);
  take(pass, of.implementation);
}

void StepClock::placed(const autograd::Node& node) {
  after_look([this, at = &node] {
    // An address may have been that of another node before.
    placed_.erase(at);
    if (latest_.operation != nullptr) latest_placed_ = &placed_.insert_or_assign(at, latest_).first->second;
  });
}

void StepClock::noted(const Tensor&, const std::any& options, const std::vector<Tensor>&) {
  const auto* const scores = std::any_cast<ops::ScoreOptions>(&options);
  if (scores != nullptr && scores->causal) after_look([this] { count_causal(); });
}

void StepClock::count_causal() {
  if (latest_.operation == nullptr) return;
  latest_.forward_pass->work.operations -= kCausalShare * latest_.forward.operations;
  if (latest_placed_ != nullptr) latest_placed_->backward.operations *= kCausalShare;
}

void StepClock::backward_begins(const autograd::Node& node) {
  look([this, at = &node, name = node.name()] { count_visit(at, name); });
}

void StepClock::count_visit(const autograd::Node* node, std::string_view name) {
  const auto found = placed_.find(node);
  // A graph may be older than the step.
  Pass& pass = (found == placed_.end() ? at(name, nullptr, DType::kFloat32, false) : *found->second.operation).backward;
  open({.pass = &pass, .part = phase_, .is_visit = true, .name = name, .category = "operation"}, true);
  note(pass, found == placed_.end() ? ops::OperationWork() : found->second.backward);
}

void StepClock::backward_ends(const autograd::Node& node) {
  look([this, at = &node, implementation = kernels::take_implementation()] {
    take(*open_.back().pass, implementation);
    close_innermost();
    placed_.erase(at);
  });
}

void StepClock::range_begins(const char* name, RangeKind kind) {
  look([this, name, kind] { count_range(name, kind); });
}

void StepClock::count_range(const char* name, RangeKind kind) {
  Pass& pass = range(name);
  ++pass.calls;
  const StepPart part = kind == RangeKind::kData            ? StepPart::kData
                        : kind == RangeKind::kCommunication ? StepPart::kCommunication
                                                            : phase_;
  open({.pass = &pass, .part = part, .is_visit = false, .name = name, .category = name_of(kind)},
       kind == RangeKind::kWork || kind == RangeKind::kDevice);
}

void StepClock::range_ends() {
  look([this] {
    if (!open_.empty()) close_innermost();
  });
}

OperationTimes& StepClock::at(std::string_view name, const nn::Module* layer, DType dtype, bool again) {
  const auto [entry, is_new] = by_key_.try_emplace({name.data(), layer, dtype, again}, nullptr);
  if (is_new) {
    entry->second = &operations_.emplace_back();
    entry->second->name = name;
    entry->second->layer = layer;
    entry->second->dtype = dtype;
    entry->second->again = again;
  }
  return *entry->second;
}

StepClock::Pass& StepClock::range(const char* name) {
  OperationTimes& times = at(name, nullptr, DType::kFloat32, false);
  times.is_operation = false;
  return times.forward;
}

}  // namespace lockstep::step
