// SPDX-License-Identifier: Apache-2.0
#include "amp/grad_scaler/grad_scaler.h"

#include <algorithm>
#include <cmath>

#include "runtime/ops/elementwise.h"
#include "runtime/ops/shape.h"
#include "runtime/tensor/error.h"

namespace lockstep::amp {

GradScaler::GradScaler(const job::LossScale& config, std::shared_ptr<comm::Communicator> communicator)
    : dynamic_(config.dynamic()),
      min_(config.min()),
      max_(config.max()),
      max_consecutive_skips_(config.max_consecutive_skips()),
      communicator_(std::move(communicator)),
      scale_(Tensor::from<float>({static_cast<float>(config.init())}, {})) {
  if (!(config.init() > 0)) throw UsageError("the loss scale must be > 0, not " + std::to_string(config.init()));
  if (dynamic_ && !(config.growth_factor() > 1)) {
    throw UsageError("the growth factor must be > 1, not " + std::to_string(config.growth_factor()));
  }
  if (dynamic_ && !(config.backoff_factor() > 0 && config.backoff_factor() < 1)) {
    throw UsageError("the backoff factor must lie between 0 and 1, not " + std::to_string(config.backoff_factor()));
  }
  state_.set_enabled(true);
  state_.set_growth_factor(config.growth_factor());
  state_.set_backoff_factor(config.backoff_factor());
  state_.set_growth_interval(config.growth_interval());
}

Tensor GradScaler::scale(const Tensor& loss) {
  scaled_ = true;
  // 65536 times a float16 loss is infinite.
  const Tensor wide = is_reduced(loss.dtype()) ? ops::cast(loss, DType::kFloat32) : loss;
  return ops::scale_by(wide, scale_.as<float>().data());
}

void GradScaler::note_local_flags(const optim::Optimizer& optimizer, const Tensor& flags) {
  optimizers_[&optimizer].local_flags = flags;
}

void GradScaler::require_scaled(const char* operation) const {
  if (!scaled_) {
    throw UsageError(std::string(operation) + " was called before any scale(loss)",
                     "Call scaler.scale(loss).backward() first.");
  }
}

Verdict GradScaler::check(optim::Optimizer& optimizer, PerOptimizer& record) {
  return agree(optimizer.check_gradients(), record.local_flags, *communicator_);
}

void GradScaler::unscale_(optim::Optimizer& optimizer) {
  require_scaled("unscale_()");
  PerOptimizer& record = optimizers_[&optimizer];
  if (record.stage == Stage::kUnscaled) {
    throw UsageError("unscale_() has already been called on this optimizer since the last update()");
  }
  if (record.stage == Stage::kStepped) throw UsageError("unscale_() is being called after step()");
  optimizer.unscale_gradients(inverse_scale());
  record.verdict = check(optimizer, record);
  record.stage = Stage::kUnscaled;
}

Verdict GradScaler::step(optim::Optimizer& optimizer) {
  require_scaled("step()");
  PerOptimizer& record = optimizers_[&optimizer];
  if (record.stage == Stage::kStepped) {
    throw UsageError("step() has already been called since the last update()");
  }
  const bool unscaled = record.stage == Stage::kUnscaled;
  // After unscale_() the user may have changed the gradients, so clipping by norm measures them again; what counts as
  // an overflow was decided when they were unscaled.
  if (unscaled) {
    optimizer.check_gradients();
  } else {
    record.verdict = check(optimizer, record);
  }
  optimizer.step(unscaled ? 1.0f : inverse_scale(), record.verdict.found_inf ? 1.0f : 0.0f);
  record.stage = Stage::kStepped;
  record.local_flags = {};
  return record.verdict;
}

void GradScaler::update() {
  require_scaled("update()");
  bool stepped = false;
  bool found_inf = false;
  std::string parameter;
  int rank = -1;
  for (const auto& [optimizer, record] : optimizers_) {
    stepped = stepped || record.stage != Stage::kReady;
    if (!record.verdict.found_inf || found_inf) continue;
    found_inf = true;
    parameter = optimizer->arena().slots().at(static_cast<std::size_t>(record.verdict.slot)).parameter.name;
    rank = record.verdict.rank;
  }
  if (!stepped) throw UsageError("update() was called, but no inf check was recorded since the last one");
  optimizers_.clear();
  state_.set_skipped_steps(state_.skipped_steps() + (found_inf ? 1 : 0));
  state_.set_consecutive_skips(found_inf ? state_.consecutive_skips() + 1 : 0);
  if (max_consecutive_skips_ > 0 && state_.consecutive_skips() >= max_consecutive_skips_) give_up(parameter, rank);
  if (dynamic_) adapt_scale(found_inf);
}

void GradScaler::adapt_scale(bool found_inf) {
  const double scale = static_cast<double>(current_scale());
  float& next = scale_.as<float>()[0];
  if (found_inf) {
    next = static_cast<float>(std::max(scale * state_.backoff_factor(), min_));
    state_.set_growth_tracker(0);
  } else if (state_.growth_tracker() + 1 >= state_.growth_interval()) {
    const float grown = static_cast<float>(scale * state_.growth_factor());
    if (std::isfinite(grown)) next = std::min(grown, static_cast<float>(max_));
    state_.set_growth_tracker(0);
  } else {
    state_.set_growth_tracker(state_.growth_tracker() + 1);
  }
}

void GradScaler::give_up(const std::string& parameter, int rank) const {
  throw NumericsError(std::to_string(state_.consecutive_skips()) + " steps in a row were skipped: the gradient of " +
                          parameter + " is not finite" +
                          (rank >= 0 ? ", first on rank " + std::to_string(rank) : " after the reduction") +
                          " (loss scale " + std::to_string(current_scale()) + ")",
                      "Lower the learning rate, look at the data, or set amp.dtype: BF16. The weights are those of the "
                      "last applied step.");
}

checkpoint::ScalerState GradScaler::state_dict() const {
  checkpoint::ScalerState state = state_;
  state.set_scale(current_scale());
  return state;
}

void GradScaler::load_state_dict(const checkpoint::ScalerState& state) {
  if (!state.enabled()) {
    throw UsageError("the state is empty: it comes from a disabled GradScaler or a checkpoint without one");
  }
  state_.set_growth_tracker(state.growth_tracker());
  state_.set_consecutive_skips(state.consecutive_skips());
  state_.set_skipped_steps(state.skipped_steps());
  if (dynamic_) {
    scale_.as<float>()[0] = static_cast<float>(std::clamp(static_cast<double>(state.scale()), min_, max_));
  }
}

}  // namespace lockstep::amp
