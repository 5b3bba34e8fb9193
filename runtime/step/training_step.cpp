// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/training_step.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "comm/ddp/digest.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/nn/step_context.h"
#include "runtime/ops/elementwise.h"

namespace lockstep::step {

namespace {

/// The running statistics with the pending ones.
std::vector<nn::RunningStatistics> statistics_of(const nn::Arena& arena) {
  std::vector<nn::RunningStatistics> all;
  for (const auto& [name, statistics] : arena.statistics()) all.push_back(*statistics);
  return all;
}

void restore(const nn::Arena& arena, const std::vector<nn::RunningStatistics>& all) {
  for (std::size_t i = 0; i < all.size(); ++i) *arena.statistics()[i].second = all[i];
}

}  // namespace

TrainingStep::TrainingStep(comm::DistributedDataParallel& ddp, optim::Optimizer& optimizer, amp::GradScaler& scaler,
                           Loss loss, TrainingStepOptions options)
    : ddp_(ddp),
      optimizer_(optimizer),
      scaler_(scaler),
      arena_(*ddp.model().arena()),
      loss_(std::move(loss)),
      observers_(std::move(options.observers)),
      mean_(options.mean),
      rank_numbers_(options.rank_numbers),
      compare_weights_every_(options.compare_weights_every),
      device_(arena_.options().device),
      uploader_(device_, ddp_.communicator().size()),
      outcome_(StepOutcome{}, device_) {
  if (&optimizer_.arena() != &arena_) {
    throw UsageError("a training step whose optimizer updates another model than its DistributedDataParallel trains",
                     "Give amp::initialize this model and this optimizer.");
  }
  if (options.graph == Graph::kOn && device_ == kCpu) {
    throw UsageError("a step on the CPU cannot be a CUDA graph", "Leave TrainingStepOptions::graph at Graph::kAuto.");
  }
  if (rank_numbers_ != nullptr && device_ != kCpu)
    throw UsageError("a step on a GPU cannot carry numbers of its ranks");
  if (rank_numbers_ != nullptr) shared_ = Tensor::zeros({kSums + ddp_.communicator().size()}, DType::kFloat32);
  if (device_ != kCpu && options.graph != Graph::kOff) {
    graph_.emplace(device_, ddp_.communicator(), options.graph == Graph::kOn);
  }
  if (observers_.empty()) return;
  ddp_.reducer().set_on_gradient(
      [this](std::size_t slot) { tell([slot](StepObserver& observer) { observer.gradient_ready(slot); }); });
}

TrainingStep::~TrainingStep() {
  if (!observers_.empty()) ddp_.reducer().set_on_gradient(nullptr);
}

void TrainingStep::run(std::span<const data::Batch> micro_batches, bool stop) {
  if (micro_batches.empty()) throw UsageError("a training step without a batch");
  const std::uint64_t named = micro_batches.front().step;
  run(uploader_.upload(named > 0 ? named : step_ + 1, {micro_batches.begin(), micro_batches.end()}, stop));
}

void TrainingStep::run(const StepInputs& inputs) {
  step_ = inputs.step;
  tell([this](StepObserver& observer) { observer.step_begins(step_); });
  // A step that is captured must neither be the one that takes this memory nor the one that follows a weight's writer.
  if (inputs.micro_batches.size() > 1) arena_.float32_grads();
  arena_.take_over_writes();
  arena_.keep_shown_gradients();
  if (graph_ && !needs_phases(step_)) {
    compute_by_graph(inputs);
  } else {
    compute(inputs);
  }
  // A GPU's later steps may be captured, which cannot be waited for.
  if (device_ != kCpu) divisor_checked_ = true;
  if (compare_weights_every_ > 0 && step_ % compare_weights_every_ == 0) compare_weights();
  tell([this](StepObserver& observer) { observer.step_ends(step_); });
}

void TrainingStep::compute_by_graph(const StepInputs& inputs) {
  // What a step changes on the host and does not set anew itself. A capture that fails has run a part of it, on memory
  // of the graph, which is gone.
  std::optional<std::vector<nn::RunningStatistics>> before;
  graph_->run(inputs, setting(), [&] {
    if (before) {
      restore(arena_, *before);
      scaler_.forget_checks();
    } else {
      before = statistics_of(arena_);
    }
    compute(inputs);
  });
}

StepGraph::Setting TrainingStep::setting() const {
  StepGraph::Setting setting;
  setting.tensors = {optimizer_.device_learning_rates(), arena_.wire()};
  for (const nn::Arena::Slot& slot : arena_.slots()) {
    setting.choices.push_back(slot.parameter.tensor.requires_grad());
  }
  ddp_.model().for_each(
      [&](const std::string&, const nn::Module& module) { setting.choices.push_back(module.training()); });
  return setting;
}

bool TrainingStep::needs_phases(std::uint64_t step) const {
  return std::ranges::any_of(observers_, [step](const StepObserver* observer) { return observer->needs_phases(step); });
}

void TrainingStep::compute(const StepInputs& inputs) {
  arena_.zero_grad();
  const Tensor sums = outcome_.field(&StepOutcome::loss, kSums);
  const Tensor loss = sums.rows(0, 1);
  sums.rows(1, 3).copy_from(inputs.told);
  const std::size_t last = inputs.micro_batches.size() - 1;
  for (std::size_t m = 0; m <= last; ++m) {
    const auto no_sync = ddp_.no_sync(m < last);
    forward_and_backward(inputs, m, loss);
  }
  tell([&](StepObserver& observer) {
    observer.phase_begins(Phase::kUpdate, inputs.step, static_cast<std::uint32_t>(last));
  });
  const DeviceValue<amp::Verdict> verdict = scaler_.step(optimizer_);
  if (mean_ != nullptr) mean_->update(verdict);
  const Tensor norm = optimizer_.device_gradient_norm();
  StepOutcome* const out = outcome_.data();
  scaler_.adapt({.verdict = verdict.data(),
                 .schedule = optimizer_.schedule().data(),
                 .gradient_norm = norm.defined() ? static_cast<const float*>(norm.data()) : nullptr,
                 .verdict_out = &out->verdict,
                 .scale_out = &out->scale,
                 .schedule_out = &out->schedule,
                 .gradient_norm_out = norm.defined() ? &out->grad_norm : nullptr});
  // What every rank must know alike: the step's loss, whether any of them asked to stop, and how many samples were
  // skipped.
  share(sums);
}

void TrainingStep::share(const Tensor& sums) {
  comm::Communicator& communicator = ddp_.communicator();
  if (rank_numbers_ == nullptr) {
    return communicator.all_reduce(sums, comm::ReduceOp::kSum, 1.0f, Stream::current(device_));
  }
  // Each rank has a place of its own, to which the others add 0.
  const Tensor first = shared_.rows(0, kSums);
  first.copy_from(sums);
  float* const numbers = static_cast<float*>(shared_.data()) + kSums;
  std::fill_n(numbers, communicator.size(), 0.0f);
  numbers[communicator.rank()] = rank_numbers_->mine();
  communicator.all_reduce(shared_, comm::ReduceOp::kSum, 1.0f, Stream::calling_thread());
  sums.copy_from(first);
  rank_numbers_->all.assign(numbers, numbers + communicator.size());
}

void TrainingStep::forward_and_backward(const StepInputs& inputs, std::size_t micro_batch, const Tensor& loss_sum) {
  const auto enter = [&](Phase phase) {
    tell([&](StepObserver& observer) {
      observer.phase_begins(phase, inputs.step, static_cast<std::uint32_t>(micro_batch));
    });
  };
  const data::Batch& batch = inputs.micro_batches[micro_batch];
  enter(Phase::kForward);
  const nn::StepContext context(inputs.position(micro_batch));
  const comm::ShareOutput output = ddp_.forward(batch);
  const comm::Share share = output.share();
  const Tensor loss = checked_loss_of(batch, output, share.loss_divisor);
  const Tensor part = micro_batch == 0 ? loss_sum : Tensor::empty({1}, DType::kFloat32, device_);
  kernels::scale(loss.detach({1}), share.loss_factor, nullptr, part);
  if (micro_batch > 0) kernels::accumulate(part, loss_sum);

  enter(Phase::kBackward);
  scaler_.backward(loss);
}

Tensor TrainingStep::loss_of(const data::Batch& batch, const Tensor& output, double divisor) const {
  const Tensor loss = loss_(output, batch.target, {.divisor = divisor, .sample_weight = batch.weight});
  if (!batch.other_target.defined()) return loss;
  return ops::add(loss, loss_(output, batch.other_target, {.divisor = divisor, .sample_weight = batch.other_weight}));
}

Tensor TrainingStep::checked_loss_of(const data::Batch& batch, const Tensor& output, double divisor) {
  const Tensor loss = loss_of(batch, output, divisor);
  const auto samples = static_cast<double>(batch.input.size(0));
  // A mean over as many samples as the divisor counts is right.
  if (divisor_checked_ || samples == 0 || samples == divisor) return loss;
  const double value = loss.item();
  if (value == 0 || !std::isfinite(value)) return loss;
  divisor_checked_ = true;
  if (loss_of(batch, output, 2 * divisor).item() != value) return loss;
  throw UsageError("the loss of a training step ignores options.divisor: it is " + std::to_string(value) + " for " +
                       std::to_string(batch.input.size(0)) + " samples with divisor " + std::to_string(divisor) +
                       " and with twice that, so the update would depend on how ranks and micro-batches share the " +
                       std::to_string(batch.step_samples) + " samples of the step",
                   "Divide the sum of the samples' losses by it: ops::cross_entropy(output, target, options), or "
                   "ops::sum(losses) / options.divisor.");
}

StepOutcome TrainingStep::outcome() const {
  const StepOutcome outcome = outcome_.read();
  require_progress(outcome);
  return outcome;
}

void TrainingStep::require_progress(const StepOutcome& outcome) const {
  if (outcome.verdict.rank == kernels::StepVerdict::kRanksDiffer) scaler_.require_same_state(optimizer_);
  scaler_.require_progress(outcome.scale, bad_parameter(outcome), outcome.verdict.rank);
}

void TrainingStep::compare_weights() {
  ddp_.share_statistics();
  std::vector<std::pair<std::string, Tensor>> state = optimizer_.state();
  if (mean_ != nullptr) state.emplace_back("mean", mean_->values());
  comm::require_equal_weights(arena_, state, ddp_.communicator(), optimizer_.parameter_state());
}

std::string TrainingStep::bad_parameter(const StepOutcome& outcome) const {
  if (outcome.verdict.slot < 0) return {};
  return optimizer_.slots().at(static_cast<std::size_t>(outcome.verdict.slot)).parameter().name;
}

}  // namespace lockstep::step
