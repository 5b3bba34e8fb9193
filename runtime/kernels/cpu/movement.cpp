// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/movement.h"

#include <algorithm>
#include <array>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/geometry/strided.h"
#include "runtime/kernels/geometry/structure_checks.h"
#include "runtime/kernels/geometry/visit_element.h"

namespace lockstep::kernels::cpu {

namespace {

/// Calls f(from, to) for the indices [begin, end) of the plan's loops, in order.
template <class F>
void for_each_index(const CopyPlan& plan, std::int64_t begin, std::int64_t end, F f) {
  std::array<std::int64_t, Shape::kMaxRank> index{};
  std::int64_t from = plan.from;
  std::int64_t to = plan.to;
  std::int64_t rest = begin;
  for (int d = plan.rank - 1; d >= 0; --d) {
    const CopyDim& dim = plan.dims[static_cast<std::size_t>(d)];
    index[static_cast<std::size_t>(d)] = rest % dim.extent;
    from += rest % dim.extent * dim.from;
    to += rest % dim.extent * dim.to;
    rest /= dim.extent;
  }
  for (std::int64_t i = begin; i < end; ++i) {
    f(from, to);
    for (int d = plan.rank - 1; d >= 0; --d) {
      const CopyDim& dim = plan.dims[static_cast<std::size_t>(d)];
      from += dim.from;
      to += dim.to;
      if (++index[static_cast<std::size_t>(d)] < dim.extent) break;
      from -= dim.extent * dim.from;
      to -= dim.extent * dim.to;
      index[static_cast<std::size_t>(d)] = 0;
    }
  }
}

std::int64_t count_of(const CopyPlan& plan) {
  std::int64_t count = 1;
  for (int d = 0; d < plan.rank; ++d) count *= plan.dims[static_cast<std::size_t>(d)].extent;
  return count;
}

template <class T>
void copy_elements(const T* in, std::int64_t in_stride, T* out, std::int64_t out_stride, std::int64_t n) {
  if (in_stride == 1 && out_stride == 1) {
    loops().copy_lines(in, 0, out, 0, n * static_cast<std::int64_t>(sizeof(T)), 1);
  } else if (in_stride == 0 && out_stride == 1) {
    std::fill_n(out, n, *in);
  } else if (in_stride == -1 && out_stride == 1) {
    std::reverse_copy(in - n + 1, in + 1, out);
  } else {
    for (std::int64_t i = 0; i < n; ++i) out[i * out_stride] = in[i * in_stride];
  }
}

/// `count` lines, one after the other along the loop `next`.
template <class T>
void copy_lines(const CopyDim& next, std::int64_t count, const CopyDim& line, const T* in, T* out) {
  constexpr std::int64_t kBytes = sizeof(T);
  if (line.from == 1 && line.to == 1) {
    return loops().copy_lines(in, next.from * kBytes, out, next.to * kBytes, line.extent * kBytes, count);
  }
  constexpr std::int64_t kShort = 64 / kBytes;
  for (std::int64_t j = 0; j < count; ++j, in += next.from, out += next.to) {
    if (line.extent > kShort) {
      copy_elements(in, line.from, out, line.to, line.extent);
    } else {
      for (std::int64_t i = 0; i < line.extent; ++i) out[i * line.to] = in[i * line.from];
    }
  }
}

template <class T>
void copy_as(CopyPlan plan, const T* in, T* out) {
  const CopyDim line = plan.rank > 0 ? plan.take(plan.rank - 1) : CopyDim{};
  const CopyDim next = plan.rank > 0 ? plan.take(plan.rank - 1) : CopyDim{};
  if (plan.rank == 0 && next.extent == 1) {
    // There is one line only: several threads share it.
    return parallel_elements(line.extent, [&](std::int64_t begin, std::int64_t n) {
      copy_elements(in + plan.from + begin * line.from, line.from, out + plan.to + begin * line.to, line.to, n);
    });
  }
  // Threads share the lines; those of one index of the outer loops are copied in one go.
  parallel_rows(count_of(plan) * next.extent, line.extent, [&](std::int64_t first, std::int64_t n) {
    std::int64_t at = first;
    for_each_index(plan, first / next.extent, (first + n + next.extent - 1) / next.extent,
                   [&](std::int64_t from, std::int64_t to) {
                     const std::int64_t j = at % next.extent;
                     const std::int64_t count = std::min(next.extent - j, first + n - at);
                     copy_lines(next, count, line, in + from + j * next.from, out + to + j * next.to);
                     at += count;
                   });
  });
}

/// Matrices whose rows are those of `rows` and whose columns are the innermost loop's.
void copy_transposed(CopyPlan plan, int columns_at, const std::byte* in, std::byte* out, std::size_t bytes) {
  const CopyDim rows = plan.take(plan.rank - 1);
  const CopyDim columns = plan.take(columns_at);
  // Stripes of rows are independent; a line of out, 64 bytes, belongs to one of them.
  constexpr std::int64_t kStripe = 256;
  const std::int64_t stripes = (rows.extent + kStripe - 1) / kStripe;
  plan.dims[static_cast<std::size_t>(plan.rank++)] = {stripes, kStripe * rows.from, kStripe};
  const std::int64_t count = count_of(plan);
  parallel_ranges(count, std::max<std::int64_t>(kGrainElements / (kStripe * columns.extent), 1),
                  [&](std::int64_t begin, std::int64_t end) {
                    std::int64_t i = begin;
                    for_each_index(plan, begin, end, [&](std::int64_t from, std::int64_t to) {
                      const std::int64_t first = i++ % stripes * kStripe;
                      loops().transpose(in + static_cast<std::size_t>(from) * bytes, rows.from,
                                        out + static_cast<std::size_t>(to) * bytes, columns.to,
                                        std::min(kStripe, rows.extent - first), columns.extent, bytes);
                    });
                  });
}

void copy_strided(const Tensor& in, const Walk& from, const Shape& extents, const Tensor& out, const Walk& to) {
  checks::copy_strided(in, from, extents, out, to);
  const CopyPlan plan = plan_copy(from, extents, to);
  if (plan.elements == 0) return;
  constexpr std::int64_t kWorthTransposing = 2;
  const int columns = plan.transposed_with(kWorthTransposing);
  if (columns >= 0) {
    return copy_transposed(plan, columns, static_cast<const std::byte*>(in.data()), static_cast<std::byte*>(out.data()),
                           size_of(in.dtype()));
  }
  visit_element(size_of(in.dtype()),
                [&]<class T>(T) { copy_as(plan, static_cast<const T*>(in.data()), static_cast<T*>(out.data())); });
}

}  // namespace

const Movement kMovement{.copy_strided = copy_strided};

}  // namespace lockstep::kernels::cpu
