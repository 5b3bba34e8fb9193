// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/fast_dtypes.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/functors/optimizer.h"
#include "runtime/kernels/geometry/checks.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

namespace {

constexpr std::int64_t kChunkElements = 16384;
constexpr std::int64_t kGrainChunks = kGrainElements / kChunkElements;

/// The loops compute in float32 and write what is at most that wide.
bool has_loop(const ArenaSlice& slice) { return !slice.copy.defined() || is_fast(slice.copy); }

bool skipped(const StepScalars& scalars) { return scalars.found_inf != nullptr && *scalars.found_inf != 0.0f; }

/// Calls step(segment, begin, n) for all parts of the slice's segments that have a gradient, `begin` in elements of the
/// slice.
template <class Step>
void for_each_part(const ArenaSlice& slice, const StepScalars& scalars, Step step) {
  for (const ArenaSegment& segment : slice.segments) {
    if (!has_gradient(scalars, segment)) continue;
    parallel_elements(segment.end - segment.begin, [&](std::int64_t begin, std::int64_t n) {
      step(segment, segment.begin - slice.base + begin, n);
    });
  }
}

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

void sgd_step(const ArenaSlice& slice, const SgdOptions& options, const StepScalars& scalars, const Tensor& momentum) {
  checks::arena_slice("sgd_step", slice);
  if (options.momentum != 0) checks::optimizer_state("sgd_step", "momentum", slice, momentum);
  if (!has_loop(slice)) return reference::kArenaSteps.sgd_step(slice, options, scalars, momentum);
  if (skipped(scalars)) return;
  float* velocity = options.momentum != 0 ? momentum.mutable_as<float>().data() : nullptr;
  for_each_part(slice, scalars, [&](const ArenaSegment& segment, std::int64_t begin, std::int64_t n) {
    loops().sgd_step(slice, options, scalars, segment, velocity, begin, n);
  });
}

void adam_step(const ArenaSlice& slice, const AdamOptions& options, const StepScalars& scalars, const Tensor& m,
               const Tensor& v) {
  checks::arena_slice("adam_step", slice);
  checks::optimizer_state("adam_step", "m", slice, m);
  checks::optimizer_state("adam_step", "v", slice, v);
  if (!has_loop(slice)) return reference::kArenaSteps.adam_step(slice, options, scalars, m, v);
  if (skipped(scalars)) return;
  float* const mean = m.mutable_as<float>().data();
  float* const square = v.mutable_as<float>().data();
  for_each_part(slice, scalars, [&](const ArenaSegment& segment, std::int64_t begin, std::int64_t n) {
    loops().adam_step(slice, options, scalars, segment, mean, square, begin, n);
  });
}

}  // namespace

const ArenaSteps kArenaSteps{
    .check_finite = check_finite, .rescale = rescale, .sgd_step = sgd_step, .adam_step = adam_step};

}  // namespace lockstep::kernels::cpu
