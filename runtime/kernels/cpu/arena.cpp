// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <tuple>
#include <variant>

#include "runtime/kernels/cpu/arena_parts.h"
#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/layer_steps.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/functors/optimizer.h"
#include "runtime/kernels/functors/running_mean.h"
#include "runtime/kernels/geometry/check.h"
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

void element_step(const ArenaSlice& slice, const ElementRule& rule, const StepScalars& scalars,
                  const std::vector<Tensor>& states) {
  checks::element_step(slice, states_of(rule), states);
  if (!has_loop(slice)) return reference::kArenaSteps.element_step(slice, rule, scalars, states);
  std::array<float*, kMostStates> values{};
  for (std::size_t i = 0; i < states.size(); ++i) values[i] = states[i].mutable_as<float>().data();
  const auto step = [&]<class Rule>(const Rule& of) {
    Check("element_step").that(takes_its_states(of), "the rule's functor does not take its states");
    for_each_layer(slice, scalars, [&](const ArenaSegment& segment) {
      for_each_part(slice, segment, [&](std::int64_t begin, std::int64_t n) {
        std::get<ElementLoop<Rule>>(loops().element_steps)(slice, of, scalars, segment, values.data(), begin, n);
      });
    });
  };
  std::visit(step, rule);
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
                             .element_step = element_step,
                             .lamb_step = lamb_step,
                             .novograd_step = novograd_step,
                             .mean_step = mean_step};

}  // namespace lockstep::kernels::cpu
