// SPDX-License-Identifier: Apache-2.0
#include "amp/grad_scaler/grad_scaler.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "comm/group/same_text.h"
#include "runtime/autograd/engine.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/scale_mark.h"
#include "runtime/base/error.h"
#include "runtime/kernels/decisions.h"
#include "runtime/kernels/functors/decisions.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/shape.h"

namespace lockstep::amp {

namespace {

std::atomic<std::uint64_t> next_id{1};

/// Throws FieldError for options out of range, before anything collective happens.
const GradScalerOptions& checked(const GradScalerOptions& options) {
  require_none(problems_of(options), "amp.loss_scale");
  return options;
}

/// The channel on which verdicts travel. Compares the options where several ranks do.
std::shared_ptr<comm::Communicator> channel_of(std::shared_ptr<comm::Communicator> all,
                                               const GradScalerOptions& options) {
  if (all->size() == 1) return all;
  comm::require_same_text(*all, describe(options), "the ranks disagree on how to scale losses",
                          "Give GradScaler the same options on every rank.");
  return all->duplicate("loss_scale");
}

/// How a device moves the scale.
kernels::LossScaleOptions rule_of(const GradScalerOptions& options) {
  return {options.enabled && options.dynamic,
          options.growth_factor,
          options.backoff_factor,
          static_cast<std::int32_t>(options.growth_interval),
          options.min,
          options.max};
}

}  // namespace

GradScaler::GradScaler(std::shared_ptr<comm::Communicator> communicator, const GradScalerOptions& options)
    : id_(next_id.fetch_add(1, std::memory_order_relaxed)),
      options_(checked(options)),
      communicator_(channel_of(std::move(communicator), options_)) {
  initial_.scale = options.enabled ? static_cast<float>(options.init) : 1.0f;
  initial_.inverse = kernels::inverse_of_scale(initial_.scale);
}

void GradScaler::set(const GradScalerOptions& options) {
  options_ = checked(options);
  if (rule_.defined()) rule_.write(rule_of(options_));
}

void GradScaler::set_growth_factor(double factor) {
  GradScalerOptions options = options_;
  options.growth_factor = factor;
  set(options);
}

void GradScaler::set_backoff_factor(double factor) {
  GradScalerOptions options = options_;
  options.backoff_factor = factor;
  set(options);
}

void GradScaler::set_growth_interval(std::uint32_t interval) {
  GradScalerOptions options = options_;
  options.growth_interval = interval;
  set(options);
}

void GradScaler::place(Device device) {
  const std::lock_guard lock(placing_);
  if (state_.defined()) return;
  state_ = DeviceValue(initial_, device);
  rule_ = DeviceValue(rule_of(options_), device);
}

Tensor GradScaler::scale(const Tensor& loss) {
  require_defined(loss, "GradScaler::scale", "the loss");
  place(loss.device());
  require_device(loss.device(), "the loss");
  if (!options_.enabled) return loss;
  // In float16 the product would overflow: the default scale, 65536, times a loss of 1 is above 65504.
  const Tensor wide = is_reduced(loss.dtype()) ? ops::cast(loss, DType::kFloat32) : loss;
  scaled_ = true;
  return marked(ops::scale_by(wide, &state_.data()->scale));
}

Tensor GradScaler::marked(const Tensor& scaled) const {
  const Tensor marked = scaled.detach();
  autograd::record(marked, "loss_scale", {scaled}, autograd::OnLosses::kScales,
                   {.recorded = [mark = mark()](const Tensor& grad, const autograd::BackwardContext& context) {
                     context.note_scaler(mark);
                     return std::vector<Tensor>{grad};
                   }});
  return marked;
}

void GradScaler::backward(const Tensor& loss) {
  require_defined(loss, "GradScaler::backward", "the loss");
  if (!options_.enabled || loss.dtype() != DType::kFloat32 || loss.numel() != 1) return scale(loss).backward();
  place(loss.device());
  require_device(loss.device(), "the loss");
  scaled_ = true;
  autograd::backward(marked(loss), state_.field(&kernels::LossScaleState::scale).reshaped(loss.shape()));
}

std::vector<Tensor> GradScaler::scale(const std::vector<Tensor>& losses) {
  std::vector<Tensor> scaled;
  for (const Tensor& loss : losses) scaled.push_back(scale(loss));
  return scaled;
}

void GradScaler::require_gradients(const char* operation, const optim::Optimizer& optimizer) const {
  if (optimizer.has_new_gradients()) return;
  throw UsageError(std::string(operation) +
                       ": no inf check can be recorded for this optimizer: no backward pass has given any of its "
                       "parameters a gradient since its last step or zero_grad()",
                   "Call scaler.scale(loss).backward() before, on a loss that depends on them.");
}

std::uint64_t GradScaler::mark() const {
  const bool of_one = !dynamic() && (!options_.enabled || options_.init == 1) && scale_changes_ == 0;
  return of_one ? autograd::kPlain : autograd::scale_mark(id_, scale_changes_);
}

void GradScaler::require_own(const char* operation, const optim::Optimizer& optimizer) const {
  for (const optim::Optimizer::Slot& slot : optimizer.slots()) {
    const autograd::ScaleMark found = slot.arena->scaler_of(slot.number);
    if (found == autograd::kUnknownScale || found == mark()) continue;
    const std::string at = std::string(operation) + ": ", of = "the gradient of " + slot.parameter().name;
    const std::uint64_t scaler = autograd::scaler_in(found);
    if (scaler != 0 && scaler != id_) {
      throw UsageError(at + "another GradScaler has scaled " + of, "Step an optimizer with the scaler of its losses.");
    }
    if (found == autograd::kPlain) {
      throw UsageError(at + of + " is that of a loss that was not scaled",
                       "Call scaler.scale(loss).backward() instead of loss.backward().");
    }
    if (found == autograd::kScaledAndPlain) {
      throw UsageError(at + of + " is a sum of those of a scaled loss and of one that was not scaled",
                       "Call scaler.scale(loss) for every loss of the optimizer.");
    }
    throw UsageError(at + of + " was scaled before update() changed the scale",
                     "Call update() behind the steps of all optimizers whose gradients were scaled, not between "
                     "micro-batches; zero_grad() before the next backward pass.");
  }
  for (const nn::Arena* arena : optimizer.arenas()) {
    if (arena->ranks() <= communicator_->size()) continue;
    throw UsageError(std::string(operation) + ": " + std::to_string(arena->ranks()) +
                         " ranks train the optimizer's model, " + std::to_string(communicator_->size()) +
                         " agree in this GradScaler",
                     "Give GradScaler the World of the model's DistributedDataParallel.");
  }
}

namespace {

bool is_unscaled(const optim::Optimizer& optimizer) {
  return std::ranges::any_of(optimizer.slots(), [](const optim::Optimizer::Slot& slot) {
    return autograd::meta_of(slot.parameter().tensor).slot_unscaled;
  });
}

}  // namespace

GradScaler::PerOptimizer& GradScaler::record_of(const optim::Optimizer& optimizer) {
  const auto found = std::ranges::find(optimizers_, optimizer.id(), &PerOptimizer::optimizer);
  if (found != optimizers_.end()) {
    // zero_grad() has ended a step that was abandoned after unscale_(): neither is what came since unscaled, nor is its
    // verdict of that.
    if (found->stage == Stage::kUnscaled && !is_unscaled(optimizer)) *found = {.optimizer = optimizer.id()};
    return *found;
  }
  optimizers_.push_back({.optimizer = optimizer.id()});
  return optimizers_.back();
}

void GradScaler::require_device(Device device, const std::string& of) const {
  if (device == state_.device()) return;
  throw UsageError(
      of + " lies on " + str(device) + ", the loss scale on " + str(state_.device()) + ", where the first loss was",
      "Train on one device, or give each its own GradScaler.");
}

void GradScaler::require_scaled(const char* operation) const {
  if (!scaled_ && options_.enabled) {
    throw UsageError(std::string(operation) + " was called before any scale(loss)",
                     "Call scaler.scale(loss).backward() first.");
  }
}

void GradScaler::agree_on(const Tensor& flags, const optim::Optimizer& optimizer, PerOptimizer& record) {
  kernels::RankState state;
  if (communicator_->size() > 1) {
    state = {.rule = rule_.data(),
             .scale = state_.data(),
             .schedule = optimizer.schedule().data(),
             .host = optimizer.parameter_rules_hash()};
  }
  record.verdict = agree(flags, optimizer.local_flags(), *communicator_, state);
  if (state_.device() == kCpu && record.verdict.data()->rank == Verdict::kRanksDiffer) require_same_state(optimizer);
  if (state_.device() != kCpu || record.verdict.data()->slot < 0) return;
  const auto slot = static_cast<std::size_t>(record.verdict.data()->slot);
  record.bad_parameter = optimizer.slots().at(slot).parameter().name;
}

void GradScaler::require_same_state(const optim::Optimizer& optimizer) const {
  const kernels::LossScaleState state = now();
  const kernels::ScheduleState schedule = optimizer.schedule().read();
  const std::string lines = fmt::format(
      "a loss scale of {}\na growth tracker of {}\nskips in a row: {}\nskipped steps: {}\napplied steps: {}\n"
      "a learning rate of {}\n",
      state.scale, state.growth_tracker, state.consecutive_skips, state.skipped_steps, schedule.applied_steps,
      schedule.learning_rate);
  const std::string what = "the ranks disagree on how to step";
  const std::string advice =
      "Change learning rates, frozen parameters and the GradScaler on every rank alike, and load the same state into "
      "each.";
  comm::require_same_text(*communicator_, lines + optimizer.parameter_rules() + describe(options_), what, advice);
  throw PeerError(what + ": they did in an earlier step, and no longer do", advice);
}

void GradScaler::unscale_(optim::Optimizer& optimizer) {
  if (!options_.enabled) return;
  require_scaled("unscale_()");
  require_device(optimizer.device(), "the optimizer of unscale_()");
  PerOptimizer& record = record_of(optimizer);
  if (record.stage == Stage::kUnscaled) {
    throw UsageError("unscale_() has already been called on this optimizer since the last update()");
  }
  if (record.stage == Stage::kStepped) throw UsageError("unscale_() is being called after step()");
  require_gradients("unscale_()", optimizer);
  require_own("unscale_()", optimizer);
  optimizer.require_reduced("unscale_()");
  agree_on(optimizer.unscale_gradients(&state_.data()->inverse), optimizer, record);
  for (const optim::Optimizer::Slot& slot : optimizer.slots()) slot.arena->note_unscaled(slot.number);
  record.stage = Stage::kUnscaled;
}

DeviceValue<Verdict> GradScaler::step(optim::Optimizer& optimizer) {
  require_scaled("step()");
  place(optimizer.device());
  require_device(optimizer.device(), "the optimizer of step()");
  PerOptimizer& record = record_of(optimizer);
  if (record.stage == Stage::kStepped) {
    throw UsageError("step() has already been called since the last update()");
  }
  // After unscale_() the user may have changed the gradients, so clipping by norm measures them again; what counts as
  // an overflow was decided when they were unscaled.
  const bool unscaled = record.stage == Stage::kUnscaled;
  if (unscaled) {
    for (const optim::Optimizer::Slot& slot : optimizer.slots()) {
      autograd::require_unscaled(slot.parameter().tensor, "step() after unscale_()",
                                 "Call zero_grad() of the optimizer to begin another step.");
    }
    optimizer.check_gradients();
  } else {
    require_gradients("step()", optimizer);
    require_own("step()", optimizer);
    optimizer.require_reduced("step()");
    agree_on(optimizer.check_gradients(), optimizer, record);
  }
  const float* found_inf = &record.verdict.data()->found_inf;
  optimizer.step(unscaled ? nullptr : &state_.data()->inverse, found_inf);
  optimizer.commit_statistics(found_inf);
  record.stage = Stage::kStepped;
  return record.verdict;
}

}  // namespace lockstep::amp
