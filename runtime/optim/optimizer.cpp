// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/optimizer.h"

#include <algorithm>
#include <cmath>

#include "runtime/tensor/error.h"

namespace lockstep::optim {

Optimizer::Optimizer(std::vector<nn::Parameter> parameters, std::vector<ParameterOptions> per_parameter,
                     const OptimizerOptions& options)
    : parameters_(std::move(parameters)),
      per_parameter_(std::move(per_parameter)),
      options_(options),
      lr_(options.lr) {}

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
    segments_.push_back({slot.begin, slot.end, own.lr_scale, own.weight_decay});
  }
  arena_ = std::move(arena);
  const auto count = static_cast<std::int64_t>(segments_.size());
  flags_ = Tensor::zeros({count}, DType::kFloat32);
  squares_ = options_.clip_norm > 0 ? Tensor::zeros({count}, DType::kFloat64) : Tensor();
  state_.clear();
  allocate_state();
}

nn::Arena& Optimizer::arena() const {
  if (!arena_) {
    throw UsageError("the optimizer has no arena yet", "Call amp::initialize(model, optimizer, ...) before training.");
  }
  return *arena_;
}

Tensor Optimizer::add_state(const std::string& name) {
  const Tensor tensor = Tensor::empty({arena_->size()}, DType::kFloat32, arena_->masters().device());
  kernels::backend(tensor.device()).fill(tensor, 0.0);
  state_.emplace_back(name, tensor);
  return tensor;
}

const Tensor& Optimizer::check_gradients() {
  arena().zero_missing_grads();
  const Tensor& grads = arena().grads();
  kernels::backend(grads.device()).check_finite(grads, 0, segments_, flags_, squares_);
  return flags_;
}

double Optimizer::gradient_norm(float inverse_scale) const {
  if (!squares_.defined()) return 0.0;
  double sum = 0;
  for (const double square : squares_.as<double>()) sum += square;
  return std::sqrt(sum) * static_cast<double>(inverse_scale);
}

void Optimizer::step() {
  const auto flags = check_gradients().as<float>();
  const bool bad = std::ranges::any_of(flags, [](float flag) { return flag != 0.0f; });
  step(1.0f, bad ? 1.0f : 0.0f);
}

void Optimizer::step(float inverse_scale, float found_inf) {
  nn::Arena& arena = this->arena();
  // PyTorch's clip_grad_norm_: the factor clip / (norm + 1e-6), at most 1.
  const double norm = gradient_norm(inverse_scale);
  const float clip = options_.clip_norm > 0 ? static_cast<float>(std::min(1.0, options_.clip_norm / (norm + 1e-6))) : 1;
  const float lr = static_cast<float>(lr_);
  const std::int64_t step = applied_steps_ + 1;
  kernels::StepScalars scalars;
  scalars.inverse_scale = &inverse_scale;
  scalars.clip = options_.clip_norm > 0 ? &clip : nullptr;
  scalars.found_inf = &found_inf;
  scalars.learning_rate = &lr;
  scalars.step = &step;
  scalars.clip_value = static_cast<float>(options_.clip_value);

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
    update(slice, scalars);
  }
  arena.commit_statistics(&found_inf);
  if (found_inf != 0.0f) return;
  applied_steps_ = step;
  for (const nn::Parameter& parameter : parameters_) parameter.tensor.bump_version();
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

void Optimizer::unscale_gradients(float inverse_scale) {
  const Tensor& grads = arena().grads();
  if (is_reduced(grads.dtype())) {
    throw UsageError(
        "attempting to unscale " + std::string(name_of(grads.dtype())) + " gradients: small ones would be lost",
        "Set comm.wire_dtype to FP32, or leave the unscaling to the optimizer (clip_norm, clip_value).");
  }
  kernels::backend(grads.device()).scale(grads, static_cast<double>(inverse_scale), nullptr, grads);
}

}  // namespace lockstep::optim
