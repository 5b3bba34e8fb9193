// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/fast_dtypes.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/functors/optimizer.h"

// How the optimizers' steps cut a slice of the arena.

namespace lockstep::kernels::cpu {

/// Whether the loops can step the slice: they compute in float32 and write copies of at most that width.
inline bool has_loop(const ArenaSlice& slice) { return !slice.copy.defined() || is_fast(slice.copy); }

inline bool skipped(const StepScalars& scalars) { return scalars.found_inf != nullptr && *scalars.found_inf != 0.0f; }

/// Calls step(segment) for those that have a gradient, unless the step is skipped.
template <class Step>
void for_each_layer(const ArenaSlice& slice, const StepScalars& scalars, Step step) {
  if (skipped(scalars)) return;
  for (const ArenaSegment& segment : slice.segments) {
    if (has_gradient(scalars, segment)) step(segment);
  }
}

/// Calls step(begin, n) for parts of the segment, on several threads; `begin` in elements of the slice.
template <class Step>
void for_each_part(const ArenaSlice& slice, const ArenaSegment& segment, Step step) {
  parallel_elements(segment.end - segment.begin,
                    [&](std::int64_t begin, std::int64_t n) { step(segment.begin - slice.base + begin, n); });
}

inline constexpr std::int64_t kChunkElements = 16384;
inline constexpr std::int64_t kGrainChunks = kGrainElements / kChunkElements;

/// The results of measure(begin, n) for the segment's chunks, in their order, whatever the number of threads.
template <class Measure>
auto measure_chunks(const ArenaSlice& slice, const ArenaSegment& segment, Measure measure) {
  return reduce_chunks(
      segment.end - segment.begin, kChunkElements, kGrainChunks,
      [&](std::int64_t begin, std::int64_t n) { return measure(segment.begin - slice.base + begin, n); });
}

}  // namespace lockstep::kernels::cpu
