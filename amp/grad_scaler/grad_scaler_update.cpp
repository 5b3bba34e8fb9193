// SPDX-License-Identifier: Apache-2.0
// GradScaler::update(): the scale backs off, grows or stays. Too many skipped steps in a row are an error.
#include <string>

#include "amp/grad_scaler/grad_scaler.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/kernels/decisions.h"

namespace lockstep::amp {

void GradScaler::update() { finish_update({}); }

void GradScaler::update(double new_scale) {
  if (!options_.enabled) return update();
  require_scaled("update()");
  GradScalerOptions options = options_;
  options.init = new_scale;
  for (const FieldProblem& problem : problems_of(options)) {
    throw FieldError("GradScaler::update(new_scale)", problem.message);
  }
  const Tensor scale = Tensor::empty({1}, DType::kFloat32, state_.device());
  kernels::fill(scale, new_scale);
  finish_update(scale);
}

void GradScaler::update(const Tensor& new_scale) {
  if (!options_.enabled) return update();
  require_scaled("update()");
  if (new_scale.dtype() != DType::kFloat32 || new_scale.numel() != 1 || new_scale.requires_grad()) {
    throw UsageError("GradScaler::update(new_scale) takes one float32 number without a gradient, not " +
                     describe(new_scale));
  }
  require_device(new_scale.device(), "the new scale");
  finish_update(new_scale);
}

void GradScaler::finish_update(const Tensor& new_scale) {
  if (state_.defined() && state_.device() != kCpu) return adapt(new_scale, {});
  std::string parameter;
  int rank = -1;
  for (const PerOptimizer& record : optimizers_) {
    if (record.bad_parameter.empty() || !parameter.empty()) continue;
    parameter = record.bad_parameter;
    rank = record.verdict.data()->rank;
  }
  adapt(new_scale, {});
  if (state_.defined()) require_progress(state_.read(), parameter, rank);
}

Tensor GradScaler::found_inf() const {
  Tensor any;
  for (const PerOptimizer& record : optimizers_) {
    if (record.stage == Stage::kReady) continue;
    const Tensor mine = record.verdict.field(&Verdict::found_inf);
    if (!any.defined()) {
      any = mine;
      continue;
    }
    const Tensor both = Tensor::empty({1}, DType::kFloat32, state_.device());
    kernels::add(any, mine, both);
    any = both;
  }
  return any;
}

void GradScaler::adapt(const Tensor& new_scale, const kernels::StepReport& report) {
  require_scaled("update()");
  const Tensor found = found_inf();
  if (!found.defined() && !new_scale.defined()) {
    if (!options_.enabled) return;
    throw UsageError("update() was called, but no inf check was recorded since the last one");
  }
  const auto number = [](const Tensor& tensor) {
    return tensor.defined() ? static_cast<const float*>(tensor.data()) : nullptr;
  };
  // On a GPU the host cannot see whether the scale changed: it counts only a new scale of the caller's.
  const bool known = state_.device() == kCpu;
  const float before = known ? state_.data()->scale : 0.0f;
  kernels::Decisions::on(state_.device())
      .update_loss_scale(state_.device(), rule_.data(), number(found), number(new_scale), state_.data(), report);
  if (known ? state_.data()->scale != before : new_scale.defined()) ++scale_changes_;
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
  if (rank == Verdict::kRanksDiffer) {
    throw PeerError("the ranks disagree on how to step, so steps are skipped",
                    "GradScaler::require_same_state(optimizer), called on every rank, names what differs.");
  }
  const auto skips = static_cast<std::uint32_t>(state.consecutive_skips);
  if (options_.max_consecutive_skips == 0 || skips < options_.max_consecutive_skips) return;
  throw NumericsError(std::to_string(skips) + " steps in a row were skipped: the gradient of " + parameter +
                          " is not finite" + origin_of(rank) + " (loss scale " + std::to_string(state.used) + ")",
                      "Lower the learning rate, look at the data, or set amp.dtype: BF16. The weights are those of the "
                      "last applied step.");
}

}  // namespace lockstep::amp
