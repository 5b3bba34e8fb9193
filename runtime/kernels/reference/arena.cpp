// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "runtime/kernels/functors/optimizer.h"
#include "runtime/kernels/geometry/checks.h"
#include "runtime/kernels/reference/families.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels::reference {

namespace {

/// What the update of one weight depends on besides the weight and the optimizer's state.
struct Element {
  std::size_t at;  ///< in the slice
  double grad;     ///< unscaled and clipped
  double lr;
  double weight_decay;
  double steps;  ///< applied to its parameter before
};

/// Replaces every weight under a segment by update(element, weight), unless the step is skipped.
template <class Update>
void step(const ArenaSlice& slice, const StepScalars& scalars, Update update) {
  if (scalars.found_inf != nullptr && *scalars.found_inf != 0) return;
  const auto or_one = [](const float* scalar) { return scalar == nullptr ? 1.0 : static_cast<double>(*scalar); };
  const double factor = or_one(scalars.inverse_scale) * or_one(scalars.clip);
  const double limit = scalars.clip_value > 0 ? static_cast<double>(scalars.clip_value) : INFINITY;
  const Values grad = load(slice.grad);
  Values master = load(slice.master);
  Values copy = slice.copy.defined() ? load(slice.copy) : Values(master.size());
  for (const ArenaSegment& segment : slice.segments) {
    if (!has_gradient(scalars, segment)) continue;
    const std::int64_t steps = scalars.steps != nullptr ? scalars.steps[segment.parameter] : 0;
    for (std::int64_t offset = segment.begin; offset < segment.end; ++offset) {
      const auto at = static_cast<std::size_t>(offset - slice.base);
      const Element element{.at = at,
                            .grad = std::clamp(grad[at] * factor, -limit, limit),
                            .lr = static_cast<double>(*scalars.learning_rate) * segment.lr_scale,
                            .weight_decay = segment.weight_decay,
                            .steps = static_cast<double>(steps)};
      master[at] = rounded(update(element, master[at]), slice.master_precision);
      copy[at] = master[at];
    }
  }
  store(master, slice.master);
  if (slice.copy.defined()) store(copy, slice.copy);
}

void check_finite(const Tensor& grad, std::int64_t base, std::span<const ArenaSegment> segments, const Tensor& flags,
                  const Tensor& sum_of_squares) {
  checks::check_finite(grad, base, segments, flags, sum_of_squares);
  const Values values = load(grad);
  Values found, sums;
  for (const ArenaSegment& segment : segments) {
    double sum = 0;
    bool finite = true;
    for (std::int64_t offset = segment.begin; offset < segment.end; ++offset) {
      const double value = values[static_cast<std::size_t>(offset - base)];
      finite = finite && std::isfinite(value);
      sum += value * value;
    }
    found.push_back(finite ? 0 : 1);
    sums.push_back(sum);
  }
  store(found, flags);
  if (sum_of_squares.defined()) store(sums, sum_of_squares);
}

void rescale(const Tensor& in, const float* factor, float limit, std::int64_t base,
             std::span<const ArenaSegment> segments, const Tensor& out, const Tensor& flags) {
  checks::rescale(in, base, segments, out, flags);
  const double multiplier = factor == nullptr ? 1.0 : static_cast<double>(*factor);
  const double most = limit > 0 ? static_cast<double>(limit) : INFINITY;
  const Values from = load(in);
  Values to = load(out);
  Values found;
  for (const ArenaSegment& segment : segments) {
    bool finite = true;
    for (std::int64_t offset = segment.begin; offset < segment.end; ++offset) {
      const auto at = static_cast<std::size_t>(offset - base);
      to[at] = rounded(std::clamp(from[at] * multiplier, -most, most), out.dtype());
      finite = finite && std::isfinite(to[at]);
    }
    found.push_back(finite ? 0 : 1);
  }
  store(to, out);
  if (flags.defined()) store(found, flags);
}

void sgd_step(const ArenaSlice& slice, const SgdOptions& options, const StepScalars& scalars, const Tensor& momentum) {
  checks::arena_slice("sgd_step", slice);
  const bool has_momentum = options.momentum != 0;
  if (has_momentum) checks::optimizer_state("sgd_step", "momentum", slice, momentum);
  Values velocity = has_momentum ? load(momentum) : Values();
  const double mu = options.momentum;
  step(slice, scalars, [&](const Element& element, double weight) {
    const double grad = element.grad + element.weight_decay * weight;
    double direction = grad;
    if (has_momentum) {
      double& v = velocity[element.at];
      v = element.steps == 0 ? grad : mu * v + (1 - static_cast<double>(options.dampening)) * grad;
      direction = options.nesterov ? grad + mu * v : v;
    }
    return weight - element.lr * direction;
  });
  if (has_momentum) store(velocity, momentum);
}

void adam_step(const ArenaSlice& slice, const AdamOptions& options, const StepScalars& scalars, const Tensor& m,
               const Tensor& v) {
  checks::arena_slice("adam_step", slice);
  checks::optimizer_state("adam_step", "m", slice, m);
  checks::optimizer_state("adam_step", "v", slice, v);
  const double beta1 = options.beta1, beta2 = options.beta2;
  Values first = load(m), second = load(v);
  step(slice, scalars, [&](const Element& element, double weight) {
    const double applied = element.steps + 1;
    const double correction1 = 1 - std::pow(beta1, applied);
    const double correction2 = 1 - std::pow(beta2, applied);
    double grad = element.grad;
    if (options.decoupled) {
      weight *= 1 - element.lr * element.weight_decay;
    } else {
      grad += element.weight_decay * weight;
    }
    double& mean = first[element.at];
    double& square = second[element.at];
    mean = beta1 * mean + (1 - beta1) * grad;
    square = beta2 * square + (1 - beta2) * grad * grad;
    return weight - element.lr / correction1 * mean / (std::sqrt(square / correction2) + options.epsilon);
  });
  store(first, m);
  store(second, v);
}

}  // namespace

const ArenaSteps kArenaSteps{
    .check_finite = check_finite, .rescale = rescale, .sgd_step = sgd_step, .adam_step = adam_step};

}  // namespace lockstep::kernels::reference
