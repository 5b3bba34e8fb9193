// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/optimizer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "runtime/tensor/error.h"
#include "runtime/tensor/memory.h"

namespace lockstep::optim {

namespace {

std::atomic<std::uint64_t> next_id{1};

}  // namespace

Optimizer::Optimizer(std::vector<nn::Parameter> parameters, double lr, double weight_decay,
                     const OptimizerOptions& options)
    : id_(next_id.fetch_add(1, std::memory_order_relaxed)),
      parameters_(std::move(parameters)),
      per_parameter_(resolve_groups(checked(options, "optimizer").groups, parameters_, weight_decay)),
      clip_value_(options.clip_value),
      rates_{static_cast<float>(lr)} {
  if (options.clip_norm) norm_limit_ = {.max = *options.clip_norm};
  if (options.larc) {
    layer_rule_ = {.trust_coefficient = options.larc->trust_coefficient,
                   .epsilon = options.larc->epsilon,
                   .clip = options.larc->clip,
                   .decay_without_norm = false};
  }
}

void Optimizer::limit_norm(const kernels::NormLimit& limit) {
  if (!norm_limit_ || limit.max < norm_limit_->max) norm_limit_ = limit;
}

void Optimizer::attach(std::shared_ptr<nn::Arena> arena) {
  if (arena->slots().size() != parameters_.size()) {
    throw UsageError("the optimizer has " + std::to_string(parameters_.size()) + " parameters, the model " +
                     std::to_string(arena->slots().size()));
  }
  segments_.clear();
  for (const nn::Arena::Slot& slot : arena->slots()) {
    const auto mine = std::ranges::find_if(
        parameters_, [&slot](const nn::Parameter& parameter) { return parameter.tensor.is(slot.parameter.tensor); });
    if (mine == parameters_.end()) throw UsageError("the optimizer does not know parameter " + slot.parameter.name);
    const ParameterOptions& own = per_parameter_[static_cast<std::size_t>(mine - parameters_.begin())];
    const bool adapts = own.layer_adaptation.value_or(this->adapts(slot.parameter, own.weight_decay));
    segments_.push_back({.begin = slot.begin,
                         .end = slot.end,
                         .lr_scale = own.lr_scale,
                         .weight_decay = own.weight_decay,
                         .parameter = static_cast<std::int32_t>(segments_.size()),
                         .adapts = adapts ? 1 : 0});
  }
  arena_ = std::move(arena);
  const auto count = static_cast<std::int64_t>(segments_.size());
  const Device device = arena_->masters().device();
  flags_ = Tensor::zeros({count}, DType::kFloat32, device);
  squares_ = norm_limit_ ? Tensor::zeros({count}, DType::kFloat64, device) : Tensor();
  norm_ = Tensor::from<float>({0.0f, 1.0f, 1.0f}, {3}).to(device);
  parameter_steps_ = Tensor::zeros({count}, DType::kInt64, device);
  device_rates_ = {};
  schedule_ = DeviceValue<kernels::ScheduleState>({}, device);
  skipped_ = Tensor::zeros({1}, DType::kFloat32, device);
  set_learning_rates(rates_);
  layer_rates_ = layer_rule_ ? Tensor::zeros({count, 2}, DType::kFloat32, device) : Tensor();
  state_.clear();
  parameter_state_.clear();
  const MemoryScope scope(MemoryPurpose::kOptimizerState);
  allocate_state();
}

std::size_t Optimizer::state_bytes(std::int64_t elements) const {
  const std::size_t numbers = state_names().size() * static_cast<std::size_t>(elements) +
                              parameter_state_names().size() * parameters_.size();
  return numbers * sizeof(float);
}

nn::Arena& Optimizer::arena() const {
  if (!arena_) {
    throw UsageError("the optimizer has no arena yet", "Call amp::initialize(model, optimizer, ...) before training.");
  }
  return *arena_;
}

Tensor Optimizer::add_state(const std::string& name, double value) {
  const Tensor tensor = Tensor::empty({arena_->size()}, DType::kFloat32, arena_->masters().device());
  kernels::backend(tensor.device()).fill(tensor, value);
  state_.emplace_back(name, tensor);
  return tensor;
}

Tensor Optimizer::add_parameter_state(const std::string& name) {
  const auto count = static_cast<std::int64_t>(segments_.size());
  const Tensor tensor = Tensor::zeros({count}, DType::kFloat32, arena_->masters().device());
  parameter_state_.emplace_back(name, tensor);
  return tensor;
}

const Tensor& Optimizer::check_gradients() {
  arena().zero_missing_grads();
  const Tensor& grads = arena().grads();
  kernels::backend(grads.device()).check_finite(grads, 0, segments_, flags_, squares_);
  return flags_;
}

void Optimizer::set_learning_rates(const std::vector<float>& rates) {
  if (rates.empty()) throw UsageError("a schedule without a learning rate");
  rates_ = rates;
  if (!schedule_.defined()) return;
  const Tensor host = Tensor::from(rates_, {static_cast<std::int64_t>(rates_.size())});
  if (device_rates_.defined() && device_rates_.shape() == host.shape()) {
    device_rates_.copy_from(host);
  } else {
    device_rates_ = host.to(schedule_.device());
  }
  set_applied_steps(applied_steps());
}

double Optimizer::learning_rate() const {
  return static_cast<double>(schedule_.defined() ? schedule_.read().learning_rate : rates_.front());
}

std::int64_t Optimizer::applied_steps() const { return schedule_.defined() ? schedule_.read().applied_steps : 0; }

void Optimizer::set_applied_steps(std::int64_t steps) {
  const auto last = static_cast<std::int64_t>(rates_.size()) - 1;
  schedule_.write({steps, rates_[static_cast<std::size_t>(std::clamp<std::int64_t>(steps, 0, last))]});
}

double Optimizer::gradient_norm() const { return squares_.defined() ? norm_.item(0) : 0.0; }

void Optimizer::step() {
  const Tensor& flags = check_gradients();
  const Device device = flags.device();
  const Tensor ballot = Tensor::empty({2 * flags.numel()}, DType::kFloat32, device);
  const DeviceValue<kernels::StepVerdict> verdict(device);
  kernels::backend(device).cast_ballot(flags, {}, 0, 1, ballot);
  kernels::backend(device).count_ballot(ballot, 1, verdict.data());
  step(nullptr, &verdict.data()->found_inf);
  arena().commit_statistics(&verdict.data()->found_inf);
  kernels::backend(device).accumulate(verdict.field(&kernels::StepVerdict::found_inf), skipped_);
  if (device == kCpu) say_skipped(skipped_steps());
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
  const Tensor scalars = Tensor::from<float>({inverse_scale, found_inf}, {2}).to(arena().masters().device());
  const auto* numbers = static_cast<const float*>(scalars.data());
  step(numbers, numbers + 1);
}

void Optimizer::step(const float* inverse_scale, const float* found_inf) {
  nn::Arena& arena = this->arena();
  const kernels::Backend& backend = kernels::backend(arena.masters().device());
  auto* numbers = static_cast<float*>(norm_.data());
  kernels::StepScalars scalars;
  scalars.inverse_scale = inverse_scale != nullptr ? inverse_scale : numbers + 2;
  if (squares_.defined()) {
    backend.clip_factor(squares_, scalars.inverse_scale, *norm_limit_, numbers, numbers + 1);
    scalars.clip = numbers + 1;
  }
  scalars.found_inf = found_inf;
  scalars.learning_rate = &schedule_.data()->learning_rate;
  const Tensor has_gradient = arena.has_gradient();
  scalars.has_gradient = static_cast<const float*>(has_gradient.data());
  scalars.steps = static_cast<const std::int64_t*>(parameter_steps_.data());
  scalars.clip_value = static_cast<float>(clip_value_.value_or(0.0));

  kernels::ArenaSlice slice;
  slice.master = arena.masters();
  slice.grad = arena.grads();
  slice.copy = arena.copies();
  // What a master may hold differs where there are none in float32 (O3) but normalisations keep theirs.
  for (const bool rounded : {false, true}) {
    const std::vector<kernels::ArenaSegment> segments = segments_to_update(rounded);
    if (segments.empty()) continue;
    slice.segments = segments;
    slice.master_precision = rounded ? arena.options().compute_dtype : DType::kFloat32;
    if (layer_rule_) {
      backend.layer_rates(slice, *layer_rule_, scalars, layer_rates_);
      scalars.layer_rates = static_cast<const kernels::LayerRate*>(layer_rates_.data());
    }
    update(slice, scalars);
  }
  backend.advance_schedule(found_inf, device_rates_, has_gradient, parameter_steps_, schedule_.data());
  arena.use_gradients();
  // Whether the step was applied is known on the device alone.
  arena.note_update();
}

std::vector<kernels::ArenaSegment> Optimizer::segments_to_update(bool rounded) const {
  std::vector<kernels::ArenaSegment> segments;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const nn::Arena::Slot& slot = arena_->slots()[i];
    const bool frozen = !slot.parameter.tensor.requires_grad();
    if (!frozen && arena_->is_rounded(slot) == rounded) segments.push_back(segments_[i]);
  }
  return segments;
}

const Tensor& Optimizer::unscale_gradients(const float* inverse_scale) {
  nn::Arena& arena = this->arena();
  arena.zero_missing_grads();
  const Tensor scaled = arena.grads();
  const Tensor& unscaled = arena.float32_grads();
  kernels::backend(scaled.device()).rescale(scaled, inverse_scale, 0.0f, 0, segments_, unscaled, flags_);
  arena.hold(unscaled);
  return flags_;
}

}  // namespace lockstep::optim
