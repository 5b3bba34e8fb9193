// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/layer_steps.h"

#include <algorithm>
#include <cmath>

#include "runtime/kernels/cpu/arena_parts.h"
#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

namespace {

LayerSquares sum_of(const std::vector<LayerSquares>& chunks) {
  LayerSquares all;
  for (const LayerSquares& chunk : chunks) {
    all.weight += chunk.weight;
    all.other += chunk.other;
  }
  return all;
}

/// The square of the norm of the segment's unscaled gradient.
double gradient_square(const ArenaSlice& slice, bool max_norm, const StepScalars& scalars,
                       const ArenaSegment& segment) {
  const Input grad = input(slice.grad);
  double square = 0;
  if (max_norm) {
    for (const float largest : measure_chunks(slice, segment, [&](std::int64_t begin, std::int64_t n) {
           return loops().largest_gradient(grad.from(begin), scalars, n);
         })) {
      square = std::max(square, static_cast<double>(largest) * static_cast<double>(largest));
    }
    return square;
  }
  for (const double part : measure_chunks(slice, segment, [&](std::int64_t begin, std::int64_t n) {
         return loops().gradient_squares(grad.from(begin), scalars, n);
       })) {
    square += part;
  }
  return square;
}

}  // namespace

void layer_rates(const ArenaSlice& slice, const LayerRateRule& rule, const StepScalars& scalars, const Tensor& rates) {
  checks::layer_rates(slice, rates);
  float* const table = rates.mutable_as<float>().data();
  for_each_layer(slice, scalars, [&](const ArenaSegment& segment) {
    if (segment.adapts == 0) return;
    const Input weight = input(slice.master), grad = input(slice.grad);
    const LayerSquares squares = sum_of(measure_chunks(slice, segment, [&](std::int64_t begin, std::int64_t n) {
      return LayerSquares{loops().sum_of_squares(weight.from(begin), n),
                          loops().gradient_squares(grad.from(begin), scalars, n)};
    }));
    const LayerRate found = layer_rate(rule, scalars, segment, squares);
    table[2 * segment.parameter] = found.rate;
    table[2 * segment.parameter + 1] = found.decay;
  });
}

void lamb_step(const ArenaSlice& slice, const LambRule& rule, const StepScalars& scalars, const Tensor& m,
               const Tensor& v) {
  checks::arena_slice("lamb_step", slice);
  checks::optimizer_state("lamb_step", "m", slice, m);
  checks::optimizer_state("lamb_step", "v", slice, v);
  if (!has_loop(slice)) return reference::kArenaSteps.lamb_step(slice, rule, scalars, m, v);
  float* const mean = m.mutable_as<float>().data();
  float* const square = v.mutable_as<float>().data();
  for_each_layer(slice, scalars, [&](const ArenaSegment& segment) {
    const LayerSquares squares = sum_of(measure_chunks(slice, segment, [&](std::int64_t begin, std::int64_t n) {
      return loops().lamb_moments(slice, rule, scalars, segment, mean, square, begin, n);
    }));
    const double ratio = trust_ratio(segment, squares);
    for_each_part(slice, segment, [&](std::int64_t begin, std::int64_t n) {
      loops().lamb_weights(slice, rule, scalars, segment, ratio, mean, square, begin, n);
    });
  });
}

void novograd_step(const ArenaSlice& slice, const NovogradRule& rule, const StepScalars& scalars, const Tensor& m,
                   const Tensor& norms) {
  checks::novograd_step(slice, m, norms);
  if (!has_loop(slice)) return reference::kArenaSteps.novograd_step(slice, rule, scalars, m, norms);
  float* const mean = m.mutable_as<float>().data();
  for_each_layer(slice, scalars, [&](const ArenaSegment& segment) {
    float& norm = norms.mutable_as<float>()[static_cast<std::size_t>(segment.parameter)];
    norm = novograd_norm(rule, scalars, segment, norm, gradient_square(slice, rule.max_norm, scalars, segment));
    for_each_part(slice, segment, [&](std::int64_t begin, std::int64_t n) {
      loops().novograd_step(slice, rule, scalars, segment, norm, mean, begin, n);
    });
  });
}

}  // namespace lockstep::kernels::cpu
