// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/weight_mean.h"

#include <spdlog/spdlog.h>

#include <exception>

#include "runtime/base/option_checks.h"
#include "runtime/kernels/arena.h"
#include "runtime/tensor/memory.h"

namespace lockstep::optim {

FieldProblems problems_of(const WeightMeanOptions& options) { return problems_in_fields(options); }

WeightMean::WeightMean(Optimizer& optimizer, const WeightMeanOptions& options)
    : arena_(optimizer.arena()),
      schedule_(optimizer.schedule()),
      rule_{.decay = options.decay, .warmup = static_cast<double>(options.warmup)} {
  require_none(problems_of(options), "train.ema");
  const MemoryScope scope(MemoryPurpose::kOptimizerState);
  const Tensor& weights = arena_.masters();
  mean_ = Tensor::empty(weights.shape(), DType::kFloat32, weights.device());
  restart();
}

void WeightMean::restart() { mean_.copy_from(arena_.masters()); }

void WeightMean::update(const DeviceValue<kernels::StepVerdict>& verdict) {
  kernels::ArenaSteps::on(mean_.device())
      .mean_step(arena_.masters(), rule_, &schedule_.data()->applied_steps, &verdict.data()->found_inf, mean_);
}

Tensor WeightMean::of(const nn::Arena::Slot& slot) const {
  return mean_.rows(slot.begin, slot.end).reshaped(slot.parameter.tensor.shape());
}

WeightMean::InPlace::InPlace(const WeightMean& mean) : arena_(mean.arena_) {
  const MemoryScope scope(MemoryPurpose::kOptimizerState);
  weights_ = Tensor::empty(mean.mean_.shape(), DType::kFloat32, mean.mean_.device());
  const Tensor& masters = arena_.masters();
  weights_.copy_from(masters);
  masters.copy_from(mean.mean_);
  arena_.refresh_copies();
}

WeightMean::InPlace::~InPlace() {
  try {
    arena_.masters().copy_from(weights_);
    arena_.refresh_copies();
  } catch (const std::exception& error) {
    // A device that no longer copies ends the run with the next thing that is asked of it.
    spdlog::error("the weights do not come back from behind their mean: {}", error.what());
  }
}

}  // namespace lockstep::optim
