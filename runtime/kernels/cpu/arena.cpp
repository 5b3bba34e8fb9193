// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/kernels/cpu/arena_parts.h"
#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/layer_steps.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/functors/running_mean.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

namespace {

void check_finite(const Tensor& grad, std::int64_t base, std::span<const ArenaSegment> segments, const Tensor& flags,
                  const Tensor& sum_of_squares) {
  checks::check_finite(grad, base, segments, flags, sum_of_squares);
  if (!is_fast(grad)) return reference::kArenaSteps.check_finite(grad, base, segments, flags, sum_of_squares);
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const Input values = input(grad).from(segments[s].begin - base);
    const std::int64_t elements = segments[s].end - segments[s].begin;
    bool finite = true;
    if (sum_of_squares.defined()) {
      const auto sums = reduce_chunks(elements, kChunkElements, kGrainChunks, [&](std::int64_t first, std::int64_t n) {
        return loops().sum_of_squares(values.from(first), n);
      });
      const double sum = std::accumulate(sums.begin(), sums.end(), 0.0);
      // No sum of squares of finite floats overflows a double.
      finite = std::isfinite(sum);
      sum_of_squares.mutable_as<double>()[s] = sum;
    } else {
      const auto verdicts =
          reduce_chunks(elements, kChunkElements, kGrainChunks, [&](std::int64_t first, std::int64_t n) {
            return static_cast<char>(loops().all_finite(values.from(first), n));
          });
      finite = std::ranges::all_of(verdicts, [](char verdict) { return verdict != 0; });
    }
    flags.mutable_as<float>()[s] = finite ? 0.0f : 1.0f;
  }
}

void rescale(const Tensor& in, const float* factor, float limit, std::int64_t base,
             std::span<const ArenaSegment> segments, const Tensor& out, const Tensor& flags) {
  checks::rescale(in, base, segments, out, flags);
  if (!is_fast(in) || !is_fast(out)) {
    return reference::kArenaSteps.rescale(in, factor, limit, base, segments, out, flags);
  }
  StepScalars scalars;
  scalars.inverse_scale = factor;
  scalars.clip_value = limit;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const Input from = input(in).from(segments[s].begin - base);
    const Output to = output(out).from(segments[s].begin - base);
    const auto verdicts = reduce_chunks(
        segments[s].end - segments[s].begin, kChunkElements, kGrainChunks, [&](std::int64_t first, std::int64_t n) {
          return static_cast<char>(loops().rescale(from.from(first), scalars, to.from(first), n));
        });
    if (!flags.defined()) continue;
    flags.mutable_as<float>()[s] = std::ranges::all_of(verdicts, [](char finite) { return finite != 0; }) ? 0.0f : 1.0f;
  }
}

void sgd_step(const ArenaSlice& slice, const SgdRule& rule, const StepScalars& scalars, const Tensor& momentum) {
  checks::arena_slice("sgd_step", slice);
  if (rule.momentum != 0) checks::optimizer_state("sgd_step", "momentum", slice, momentum);
  if (!has_loop(slice)) return reference::kArenaSteps.sgd_step(slice, rule, scalars, momentum);
  float* const velocity = rule.momentum != 0 ? momentum.mutable_as<float>().data() : nullptr;
  for_each_layer(slice, scalars, [&](const ArenaSegment& segment) {
    for_each_part(slice, segment, [&](std::int64_t begin, std::int64_t n) {
      loops().sgd_step(slice, rule, scalars, segment, velocity, begin, n);
    });
  });
}

void adam_step(const ArenaSlice& slice, const AdamRule& rule, const StepScalars& scalars, const Tensor& m,
               const Tensor& v, const Tensor& max_v) {
  checks::adam_step(slice, rule, m, v, max_v);
  if (!has_loop(slice)) return reference::kArenaSteps.adam_step(slice, rule, scalars, m, v, max_v);
  float* const mean = m.mutable_as<float>().data();
  float* const square = v.mutable_as<float>().data();
  float* const largest = rule.amsgrad ? max_v.mutable_as<float>().data() : nullptr;
  for_each_layer(slice, scalars, [&](const ArenaSegment& segment) {
    for_each_part(slice, segment, [&](std::int64_t begin, std::int64_t n) {
      loops().adam_step(slice, rule, scalars, segment, mean, square, largest, begin, n);
    });
  });
}

void adagrad_step(const ArenaSlice& slice, const AdagradRule& rule, const StepScalars& scalars, const Tensor& sum) {
  checks::arena_slice("adagrad_step", slice);
  checks::optimizer_state("adagrad_step", "sum", slice, sum);
  if (!has_loop(slice)) return reference::kArenaSteps.adagrad_step(slice, rule, scalars, sum);
  float* const squares = sum.mutable_as<float>().data();
  for_each_layer(slice, scalars, [&](const ArenaSegment& segment) {
    for_each_part(slice, segment, [&](std::int64_t begin, std::int64_t n) {
      loops().adagrad_step(slice, rule, scalars, segment, squares, begin, n);
    });
  });
}

void mean_step(const Tensor& weights, const MeanRule& rule, const std::int64_t* applied_steps, const float* found_inf,
               const Tensor& mean) {
  checks::mean_step(weights, mean);
  if (*found_inf != 0.0f) return;
  const RunningMean running(rule, *applied_steps);
  const float* const from = weights.as<float>().data();
  float* const to = mean.mutable_as<float>().data();
  parallel_elements(mean.numel(), [&](std::int64_t begin, std::int64_t n) {
    loops().mean_step(from + begin, running, to + begin, n);
  });
}

}  // namespace

const ArenaSteps kArenaSteps{.check_finite = check_finite,
                             .rescale = rescale,
                             .layer_rates = layer_rates,
                             .sgd_step = sgd_step,
                             .adam_step = adam_step,
                             .adagrad_step = adagrad_step,
                             .lamb_step = lamb_step,
                             .novograd_step = novograd_step,
                             .mean_step = mean_step};

}  // namespace lockstep::kernels::cpu
