// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/indexing.h"

#include <algorithm>
#include <atomic>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/fast_dtypes.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/geometry/structure_checks.h"
#include "runtime/kernels/geometry/visit_element.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

// order.cpp
void order(const Tensor& x, bool descending, const Tensor& indices);

namespace {

using checks::Picking;

/// Whole rows of `inner` elements: indices [m].
void gather_rows(const Picking& pick, const std::int64_t* indices, const std::byte* x, std::byte* out,
                 std::size_t bytes) {
  const std::int64_t row = pick.inner * static_cast<std::int64_t>(bytes);
  parallel_rows(pick.outer * pick.m, pick.inner, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t r = first; r < first + count;) {
      const std::int64_t slice = r / pick.m, k = r % pick.m;
      const std::int64_t some = std::min(pick.m - k, first + count - r);
      loops().pick_lines(x + slice * pick.n * row, indices + k, row, some, out + r * row);
      r += some;
    }
  });
}

/// Along the last dimension, each line with indices of its own.
void gather_in_lines(const Picking& pick, const Tensor& indices, const std::byte* x, std::byte* out,
                     std::size_t bytes) {
  const auto* const at = static_cast<const std::int64_t*>(indices.data());
  const auto place = [bytes](std::int64_t element) { return static_cast<std::size_t>(element) * bytes; };
  std::atomic<bool> good = true;
  parallel_rows(pick.outer, pick.m, [&](std::int64_t first, std::int64_t count) {
    const bool all = loops().pick_elements(x + place(first * pick.n), pick.n, at + first * pick.m, pick.m, count,
                                           out + place(first * pick.m), bytes);
    if (!all) good = false;
  });
  if (!good) checks::indices_in_range("gather", indices, pick.n);
}

template <class T>
void gather_elements(const Picking& pick, const std::int64_t* indices, const T* x, T* out) {
  parallel_rows(pick.outer * pick.m, pick.inner, [&](std::int64_t first, std::int64_t count) {
    const T* slice = x + first / pick.m * pick.n * pick.inner;
    std::int64_t k = first % pick.m;
    for (std::int64_t r = first; r < first + count; ++r) {
      T* to = out + r * pick.inner;
      if (pick.own_indices) {
        const std::int64_t* own = indices + r * pick.inner;
        for (std::int64_t i = 0; i < pick.inner; ++i) to[i] = slice[own[i] * pick.inner + i];
      } else {
        const T* row = slice + indices[k] * pick.inner;
        for (std::int64_t i = 0; i < pick.inner; ++i) to[i] = row[i];
      }
      if (++k < pick.m) continue;
      k = 0;
      slice += pick.n * pick.inner;
    }
  });
}

void gather(const Tensor& x, const Tensor& indices, const Tensor& out) {
  const Picking pick = checks::picking("gather", x, indices, out);
  const auto* at = static_cast<const std::int64_t*>(indices.data());
  const auto* from = static_cast<const std::byte*>(x.data());
  auto* to = static_cast<std::byte*>(out.data());
  const std::size_t bytes = size_of(x.dtype());
  if (pick.own_indices && pick.inner == 1 && out.numel() > 0) return gather_in_lines(pick, indices, from, to, bytes);
  checks::indices_in_range("gather", indices, pick.n);
  if (out.numel() == 0) return;
  if (!pick.own_indices && static_cast<std::size_t>(pick.inner) * bytes > 64) {
    return gather_rows(pick, at, from, to, bytes);
  }
  visit_element(bytes, [&]<class T>(T) {
    gather_elements(pick, at, static_cast<const T*>(x.data()), static_cast<T*>(out.data()));
  });
}

/// Calls f(o, begin, width) for columns [begin, begin + width) of slice o, in parallel: a thread has columns of its
/// own, so that what lands in one place does so in the order of k.
template <class F>
void for_columns(const Picking& pick, std::int64_t elements, F f) {
  constexpr std::int64_t kColumns = 64;
  const std::int64_t tiles = pick.outer > 1 ? 1 : (pick.inner + kColumns - 1) / kColumns;
  parallel_rows(pick.outer * tiles, elements / (pick.outer * tiles), [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t item = first; item < first + count;) {
      // Neighbouring tiles of one slice are one.
      const std::int64_t o = item / tiles;
      const std::int64_t end = std::min(first + count, (o + 1) * tiles);
      const std::int64_t begin = item % tiles * kColumns;
      const std::int64_t behind = end == (o + 1) * tiles ? pick.inner : end % tiles * kColumns;
      f(o, begin, behind - begin);
      item = end;
    }
  });
}

/// Adds columns [begin, begin + width) of every slice of x at their places in the float32 sums.
void add_columns(const Picking& pick, const Tensor& x, const std::int64_t* indices, float* sums, std::int64_t o,
                 std::int64_t begin, std::int64_t width) {
  for (std::int64_t k = 0; k < pick.m; ++k) {
    const std::int64_t from = (o * pick.m + k) * pick.inner + begin;
    float* slice = sums + o * pick.n * pick.inner + begin;
    if (!pick.own_indices) {
      float* to = slice + indices[k] * pick.inner;
      loops().accumulate(input(x).from(from), {to, DType::kFloat32}, width);
      continue;
    }
    constexpr std::int64_t kAtOnce = 512;
    float values[kAtOnce];
    for (std::int64_t first = 0; first < width; first += kAtOnce) {
      const std::int64_t some = std::min(kAtOnce, width - first);
      loops().convert(input(x).from(from + first), {values, DType::kFloat32}, some);
      const std::int64_t* own = indices + from + first;
      for (std::int64_t i = 0; i < some; ++i) slice[own[i] * pick.inner + first + i] += values[i];
    }
  }
}

void scatter_add(const Tensor& x, const Tensor& indices, const Tensor& out) {
  const Picking pick = checks::picking("scatter_add", out, indices, x);
  checks::indices_in_range("scatter_add", indices, pick.n);
  if (!is_fast(x)) return reference::kIndexing.scatter_add(x, indices, out);
  const Tensor sums = out.dtype() == DType::kFloat32 ? out : Tensor::empty(out.shape(), DType::kFloat32);
  kElementwise.fill(sums, 0);
  if (x.numel() > 0) {
    const auto* at = static_cast<const std::int64_t*>(indices.data());
    auto* to = static_cast<float*>(sums.data());
    for_columns(pick, x.numel(), [&](std::int64_t o, std::int64_t begin, std::int64_t width) {
      add_columns(pick, x, at, to, o, begin, width);
    });
  }
  if (!sums.is(out)) kElementwise.cast(sums, out);
}

template <class T>
void write_columns(const Picking& pick, const T* x, const std::int64_t* indices, T* out, std::int64_t o,
                   std::int64_t begin, std::int64_t width) {
  T* const slice = out + o * pick.n * pick.inner;
  for (std::int64_t k = 0; k < pick.m; ++k) {
    const std::int64_t from = (o * pick.m + k) * pick.inner + begin;
    for (std::int64_t i = 0; i < width; ++i) {
      const std::int64_t index = pick.own_indices ? indices[from + i] : indices[k];
      slice[index * pick.inner + begin + i] = x[from + i];
    }
  }
}

void scatter(const Tensor& x, const Tensor& indices, const Tensor& out) {
  const Picking pick = checks::picking("scatter", out, indices, x);
  checks::indices_in_range("scatter", indices, pick.n);
  if (x.numel() == 0) return;
  const auto* at = static_cast<const std::int64_t*>(indices.data());
  visit_element(size_of(x.dtype()), [&]<class T>(T) {
    for_columns(pick, x.numel(), [&](std::int64_t o, std::int64_t begin, std::int64_t width) {
      write_columns(pick, static_cast<const T*>(x.data()), at, static_cast<T*>(out.data()), o, begin, width);
    });
  });
}

}  // namespace

const Indexing kIndexing{.gather = gather, .scatter_add = scatter_add, .scatter = scatter, .order = order};

}  // namespace lockstep::kernels::cpu
