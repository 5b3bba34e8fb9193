// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace lockstep::kernels::cpu {

/// Calls f(begin, end) for ranges that cover [0, items), on as many threads as there are `grain` items for each; on the
/// calling thread alone, without OpenMP, when that is one. f must not throw.
template <class F>
void parallel_ranges(std::int64_t items, std::int64_t grain, F f) {
  const int useful =
      static_cast<int>(std::min<std::int64_t>(omp_get_max_threads(), items / std::max<std::int64_t>(grain, 1)));
  if (useful <= 1 || omp_in_parallel()) {
    f(std::int64_t{0}, items);
    return;
  }
#pragma omp parallel num_threads(useful)
  {
    const std::int64_t thread = omp_get_thread_num();
    const std::int64_t threads = omp_get_num_threads();
    f(items * thread / threads, items * (thread + 1) / threads);
  }
}

/// Fewer elements than this are not worth waking another thread and waiting for it.
inline constexpr std::int64_t kGrainElements = 131072;

/// Calls f(first, n) for ranges of [0, elements), aligned to cache lines.
template <class F>
void parallel_elements(std::int64_t elements, F f) {
  constexpr std::int64_t kUnit = 64;
  parallel_ranges((elements + kUnit - 1) / kUnit, kGrainElements / kUnit, [&](std::int64_t begin, std::int64_t end) {
    f(begin * kUnit, std::min(end * kUnit, elements) - begin * kUnit);
  });
}

/// Calls f(first_row, rows) for ranges of [0, rows).
template <class F>
void parallel_rows(std::int64_t rows, std::int64_t channels, F f) {
  parallel_ranges(rows, kGrainElements / std::max<std::int64_t>(channels, 1),
                  [&](std::int64_t begin, std::int64_t end) { f(begin, end - begin); });
}

/// Reduces [0, items) in chunks that depend on nothing but `items` and `chunk`, so that the result has the same bits
/// for every number of threads: calls partial(first, n) for each, in parallel, and returns the results in order.
/// `grain`: chunks worth a thread.
template <class Partial>
auto reduce_chunks(std::int64_t items, std::int64_t chunk, std::int64_t grain, Partial partial) {
  const std::int64_t chunks = (items + chunk - 1) / chunk;
  std::vector<decltype(partial(items, items))> results(static_cast<std::size_t>(chunks));
  parallel_ranges(chunks, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      results[static_cast<std::size_t>(c)] = partial(c * chunk, std::min(chunk, items - c * chunk));
    }
  });
  return results;
}

}  // namespace lockstep::kernels::cpu
