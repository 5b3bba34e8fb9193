// SPDX-License-Identifier: Apache-2.0
// A step of an Optimizer: the inf check of its gradients, the verdict and the update.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "runtime/autograd/scale_mark.h"
#include "runtime/base/error.h"
#include "runtime/kernels/arena.h"
#include "runtime/kernels/assign.h"
#include "runtime/kernels/decisions.h"
#include "runtime/optim/optimizer.h"

namespace lockstep::optim {

bool Optimizer::has_new_gradients() const {
  return std::ranges::any_of(slots_, [](const Slot& slot) { return slot.arena->has_new_gradient(slot.number); });
}

void Optimizer::require_reduced(const std::string& operation) const {
  for (const Slot& slot : slots_) {
    if (!slot.arena->has_unreduced_gradient(slot.number)) continue;
    throw UsageError(operation + ": the gradient of " + slot.parameter().name +
                         " is that of this rank alone: " + std::to_string(slot.arena->ranks()) +
                         " ranks train its model, and no backward pass outside no_sync() has reduced it",
                     "Leave the last backward pass of a step outside no_sync(); where the program has reduced the "
                     "gradients itself, ddp.take_as_reduced() says so.");
  }
}

const Tensor& Optimizer::check_gradients() {
  for (const Part& part : parts()) {
    part.arena->zero_missing_grads();
    const Tensor& grads = part.arena->grads();
    const Tensor squares = squares_.defined() ? squares_.rows(part.first, part.last) : Tensor();
    kernels::ArenaSteps::on(grads.device())
        .check_finite(grads, 0, part.segments, flags_.rows(part.first, part.last), squares);
  }
  return flags_;
}

Tensor Optimizer::local_flags() const {
  return gather([](const nn::Arena& arena) { return arena.local_flags(); });
}

void Optimizer::commit_statistics(const float* found_inf) const {
  for (const Part& part : parts()) part.arena->commit_statistics(found_inf);
}

double Optimizer::gradient_norm() const { return squares_.defined() ? norm_.item(0) : 0.0; }

DeviceValue<kernels::StepVerdict> Optimizer::step() {
  for (const Slot& slot : slots_) {
    autograd::require_unscaled(slot.parameter().tensor, "optimizer.step()",
                               "Call scaler.step(optimizer), or scaler.unscale_(optimizer) before.");
  }
  require_reduced("optimizer.step()");
  const Tensor& flags = check_gradients();
  const Device device = flags.device();
  const DeviceValue<kernels::StepVerdict> verdict(device);
  kernels::Decisions::on(device).judge_alone(flags, {}, verdict.data());
  step(nullptr, &verdict.data()->found_inf);
  commit_statistics(&verdict.data()->found_inf);
  kernels::accumulate(verdict.field(&kernels::StepVerdict::found_inf), skipped_);
  if (device == kCpu) say_skipped(skipped_steps());
  return verdict;
}

std::int64_t Optimizer::skipped_steps() const {
  const auto steps = static_cast<std::int64_t>(skipped_.defined() ? skipped_.item() : 0.0);
  say_skipped(steps);
  return steps;
}

void Optimizer::say_skipped(std::int64_t steps) const {
  if (steps == 0 || said_skipped_) return;
  said_skipped_ = true;
  spdlog::warn(
      "optimizer.step() skipped {} step(s) with an inf or NaN gradient, which changed nothing; later ones are only "
      "counted: optimizer.skipped_steps()",
      steps);
}

void Optimizer::step(float inverse_scale, float found_inf) {
  const Tensor scalars = Tensor::from<float>({inverse_scale, found_inf}, {2}).to(device());
  const auto* numbers = static_cast<const float*>(scalars.data());
  step(numbers, numbers + 1);
}

void Optimizer::step(const float* inverse_scale, const float* found_inf) {
  const kernels::Decisions& decisions = kernels::Decisions::on(device());
  const kernels::ArenaSteps& arena_steps = kernels::ArenaSteps::on(device());
  auto* numbers = static_cast<float*>(norm_.data());
  kernels::StepScalars scalars;
  scalars.inverse_scale = inverse_scale != nullptr ? inverse_scale : numbers + 2;
  if (squares_.defined()) {
    decisions.clip_factor(squares_, scalars.inverse_scale, *norm_limit_, numbers, numbers + 1);
    scalars.clip = numbers + 1;
  }
  scalars.found_inf = found_inf;
  scalars.learning_rate = &schedule_.data()->learning_rate;
  const Tensor has_gradient = gather([](const nn::Arena& arena) { return arena.has_gradient(); });
  scalars.has_gradient = static_cast<const float*>(has_gradient.data());
  scalars.steps = static_cast<const std::int64_t*>(parameter_steps_.data());
  scalars.clip_value = static_cast<float>(clip_value_.value_or(0.0));

  for (const Part& part : parts_) {
    updated_ = &part;
    const nn::Arena& arena = *part.arena;
    kernels::ArenaSlice slice;
    slice.master = arena.masters().rows(part.begin, part.end);
    slice.grad = arena.grads().rows(part.begin, part.end);
    if (arena.copies().defined()) slice.copy = arena.copies().rows(part.begin, part.end);
    slice.base = part.begin;
    // Without float32 masters (O3) the masters are rounded, but those of normalisations that keep float32 are not.
    for (const bool rounded : {false, true}) {
      const std::vector<kernels::ArenaSegment> segments = segments_to_update(part, rounded);
      if (segments.empty()) continue;
      slice.segments = segments;
      slice.master_precision = rounded ? arena.options().compute_dtype : DType::kFloat32;
      if (layer_rule_) {
        arena_steps.layer_rates(slice, *layer_rule_, scalars, layer_rates_);
        scalars.layer_rates = static_cast<const kernels::LayerRate*>(layer_rates_.data());
      }
      update(slice, scalars);
    }
  }
  decisions.advance_schedule(found_inf, device_rates_, has_gradient, parameter_steps_, schedule_.data());
  for (const Slot& slot : slots_) {
    slot.arena->use_gradient(slot.number);
    // Whether the step was applied is known on the device alone.
    if (slot.parameter().tensor.requires_grad()) slot.arena->note_update(slot.number);
  }
}

std::vector<kernels::ArenaSegment> Optimizer::segments_to_update(const Part& part, bool rounded) const {
  std::vector<kernels::ArenaSegment> segments;
  for (const kernels::ArenaSegment& segment : part.segments) {
    const Slot& mine = slots_[static_cast<std::size_t>(segment.parameter)];
    const nn::Arena::Slot& slot = mine.arena->slots()[mine.number];
    const bool frozen = !slot.parameter.tensor.requires_grad();
    if (!frozen && part.arena->is_rounded(slot) == rounded) segments.push_back(segment);
  }
  return segments;
}

const Tensor& Optimizer::unscale_gradients(const float* inverse_scale) {
  for (const Part& part : parts()) {
    nn::Arena& arena = *part.arena;
    arena.zero_missing_grads();
    // The gradients of other optimizers' parameters stay scaled.
    if (!part.whole) arena.widen();
    const Tensor scaled = arena.grads();
    const Tensor& unscaled = arena.float32_grads();
    kernels::ArenaSteps::on(scaled.device())
        .rescale(scaled, inverse_scale, 0.0f, 0, part.segments, unscaled, flags_.rows(part.first, part.last));
    arena.hold(unscaled);
  }
  return flags_;
}

}  // namespace lockstep::optim
