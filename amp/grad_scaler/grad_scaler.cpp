// SPDX-License-Identifier: Apache-2.0
#include "amp/grad_scaler/grad_scaler.h"

#include <algorithm>

#include "runtime/ops/elementwise.h"
#include "runtime/ops/shape.h"
#include "runtime/tensor/error.h"

namespace lockstep::amp {

namespace {

/// Computed in double, as PyTorch does.
float inverse_of(float scale) { return static_cast<float>(1.0 / static_cast<double>(scale)); }

/// How a device moves the scale. Throws FieldError for options out of range, before anything collective happens.
kernels::LossScaleOptions rule_of(const GradScalerOptions& options) {
  require_none(problems_of(options), "amp.loss_scale");
  return {options.dynamic,
          options.growth_factor,
          options.backoff_factor,
          static_cast<std::int32_t>(options.growth_interval),
          options.min,
          options.max};
}

}  // namespace

GradScaler::GradScaler(std::shared_ptr<comm::Communicator> communicator, const GradScalerOptions& options)
    : options_(rule_of(options)),
      max_consecutive_skips_(options.max_consecutive_skips),
      communicator_(communicator->size() > 1 ? communicator->duplicate("loss_scale") : std::move(communicator)) {
  initial_.scale = static_cast<float>(options.init);
  initial_.inverse = inverse_of(initial_.scale);
}

Tensor GradScaler::scale(const Tensor& loss) {
  if (!state_.defined()) state_ = DeviceValue(initial_, loss.device());
  require_device(loss.device(), "the loss");
  // 65536 times a float16 loss is infinite.
  const Tensor wide = is_reduced(loss.dtype()) ? ops::cast(loss, DType::kFloat32) : loss;
  scaled_ = true;
  return ops::scale_by(wide, &state_.data()->scale);
}

void GradScaler::require_gradients(const char* operation, const optim::Optimizer& optimizer) {
  if (optimizer.has_new_gradients()) return;
  throw UsageError(std::string(operation) +
                       ": no inf check can be recorded for this optimizer: no backward pass has given any of its "
                       "parameters a gradient since its last step or zero_grad()",
                   "Call scaler.scale(loss).backward() before, on a loss that depends on them.");
}

GradScaler::PerOptimizer& GradScaler::record_of(const optim::Optimizer& optimizer) {
  const auto found = std::ranges::find(optimizers_, optimizer.id(), &PerOptimizer::optimizer);
  if (found != optimizers_.end()) return *found;
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
  if (!scaled_) {
    throw UsageError(std::string(operation) + " was called before any scale(loss)",
                     "Call scaler.scale(loss).backward() first.");
  }
}

void GradScaler::agree_on(const Tensor& flags, const optim::Optimizer& optimizer, PerOptimizer& record) {
  record.verdict = agree(flags, optimizer.local_flags(), *communicator_);
  if (state_.device() != kCpu || record.verdict.data()->slot < 0) return;
  const auto slot = static_cast<std::size_t>(record.verdict.data()->slot);
  record.bad_parameter = optimizer.slots().at(slot).parameter().name;
}

void GradScaler::unscale_(optim::Optimizer& optimizer) {
  require_scaled("unscale_()");
  require_device(optimizer.device(), "the optimizer of unscale_()");
  PerOptimizer& record = record_of(optimizer);
  if (record.stage == Stage::kUnscaled) {
    throw UsageError("unscale_() has already been called on this optimizer since the last update()");
  }
  if (record.stage == Stage::kStepped) throw UsageError("unscale_() is being called after step()");
  require_gradients("unscale_()", optimizer);
  agree_on(optimizer.unscale_gradients(&state_.data()->inverse), optimizer, record);
  record.stage = Stage::kUnscaled;
}

DeviceValue<Verdict> GradScaler::step(optim::Optimizer& optimizer) {
  require_scaled("step()");
  require_device(optimizer.device(), "the optimizer of step()");
  PerOptimizer& record = record_of(optimizer);
  if (record.stage == Stage::kStepped) {
    throw UsageError("step() has already been called since the last update()");
  }
  // After unscale_() the user may have changed the gradients, so clipping by norm measures them again; what counts as
  // an overflow was decided when they were unscaled.
  const bool unscaled = record.stage == Stage::kUnscaled;
  if (unscaled) {
    optimizer.check_gradients();
  } else {
    require_gradients("step()", optimizer);
    agree_on(optimizer.check_gradients(), optimizer, record);
  }
  const float* found_inf = &record.verdict.data()->found_inf;
  optimizer.step(unscaled ? nullptr : &state_.data()->inverse, found_inf);
  optimizer.commit_statistics(found_inf);
  record.stage = Stage::kStepped;
  return record.verdict;
}

void GradScaler::update() {
  if (state_.defined() && state_.device() != kCpu) return adapt();
  std::string parameter;
  int rank = -1;
  for (const PerOptimizer& record : optimizers_) {
    if (record.bad_parameter.empty() || !parameter.empty()) continue;
    parameter = record.bad_parameter;
    rank = record.verdict.data()->rank;
  }
  adapt();
  require_progress(state_.read(), parameter, rank);
}

void GradScaler::adapt() {
  require_scaled("update()");
  const kernels::Backend& backend = kernels::backend(state_.device());
  Tensor found_inf;  // above 0 where any optimizer's gradients were bad
  for (const PerOptimizer& record : optimizers_) {
    if (record.stage == Stage::kReady) continue;
    const Tensor mine = record.verdict.field(&Verdict::found_inf);
    if (!found_inf.defined()) {
      found_inf = mine;
      continue;
    }
    const Tensor both = Tensor::empty({1}, DType::kFloat32, state_.device());
    backend.add(found_inf, mine, both);
    found_inf = both;
  }
  if (!found_inf.defined()) {
    throw UsageError("update() was called, but no inf check was recorded since the last one");
  }
  backend.update_loss_scale(state_.device(), options_, static_cast<const float*>(found_inf.data()), state_.data());
  optimizers_.clear();
}

namespace {

std::string origin_of(int rank) {
  if (rank >= 0) return ", first on rank " + std::to_string(rank);
  return rank == Verdict::kNone ? " after the reduction, though every rank's own was"
                                : "; on which rank first is not known";
}

}  // namespace

void GradScaler::require_progress(const kernels::LossScaleState& state, const std::string& parameter, int rank) const {
  const auto skips = static_cast<std::uint32_t>(state.consecutive_skips);
  if (max_consecutive_skips_ == 0 || skips < max_consecutive_skips_) return;
  throw NumericsError(std::to_string(skips) + " steps in a row were skipped: the gradient of " + parameter +
                          " is not finite" + origin_of(rank) + " (loss scale " + std::to_string(state.used) + ")",
                      "Lower the learning rate, look at the data, or set amp.dtype: BF16. The weights are those of the "
                      "last applied step.");
}

GradScalerState GradScaler::state_dict() const {
  const kernels::LossScaleState state = now();
  return {.scale = state.scale,
          .growth_factor = options_.growth_factor,
          .backoff_factor = options_.backoff_factor,
          .growth_interval = static_cast<std::uint32_t>(options_.growth_interval),
          .growth_tracker = static_cast<std::uint32_t>(state.growth_tracker),
          .consecutive_skips = static_cast<std::uint32_t>(state.consecutive_skips),
          .skipped_steps = static_cast<std::uint64_t>(state.skipped_steps)};
}

void GradScaler::load_state_dict(const GradScalerState& saved) {
  if (!(saved.scale > 0)) {
    throw UsageError("the state is empty: it comes from a disabled GradScaler or a checkpoint without one");
  }
  kernels::LossScaleState state = now();
  if (options_.dynamic) {
    state.scale = static_cast<float>(std::clamp(static_cast<double>(saved.scale), options_.min, options_.max));
  }
  state.inverse = inverse_of(state.scale);
  state.growth_tracker = static_cast<std::int32_t>(saved.growth_tracker);
  state.consecutive_skips = static_cast<std::int32_t>(saved.consecutive_skips);
  state.skipped_steps = static_cast<std::int64_t>(saved.skipped_steps);
  initial_ = state;
  if (state_.defined()) state_.write(state);
}

}  // namespace lockstep::amp
