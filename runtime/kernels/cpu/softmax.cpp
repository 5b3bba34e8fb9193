// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/softmax.h"

#include <algorithm>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/fast_dtypes.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/geometry/structure_checks.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

namespace {

void softmax(const Tensor& x, bool log, const Tensor& y) {
  checks::softmax(x, y);
  if (!is_fast(x)) return reference::kSoftmax.softmax(x, log, y);
  if (x.numel() == 0) return;
  const std::int64_t channels = x.shape().back();
  parallel_rows(x.shape().rows(), channels, [&](std::int64_t first, std::int64_t rows) {
    loops().softmax(input(x).from(first * channels), log, output(y).from(first * channels), rows, channels);
  });
}

void softmax_backward(const Tensor& y, bool log, const Tensor& dy, const Tensor& dx) {
  checks::softmax_backward(y, dy, dx);
  if (!is_fast(y)) return reference::kSoftmax.softmax_backward(y, log, dy, dx);
  if (y.numel() == 0) return;
  const std::int64_t channels = y.shape().back();
  parallel_rows(y.shape().rows(), channels, [&](std::int64_t first, std::int64_t rows) {
    loops().softmax_backward(input(y).from(first * channels), log, input(dy).from(first * channels),
                             output(dx).from(first * channels), rows, channels);
  });
}

/// Calls f(first element, width) for tiles of columns of [outer, n, inner], on several threads. A tile is read more
/// than once, so that it should fit the cache, and has few enough columns for a loop.
template <class F>
void for_each_tile(const checks::Middle& extents, F f) {
  constexpr std::int64_t kElements = 131072;
  constexpr std::int64_t kFewest = 64;
  constexpr std::int64_t kMost = 512;
  const std::int64_t wanted = std::clamp(kElements / extents.n, kFewest, kMost) / kFewest * kFewest;
  const std::int64_t columns = std::min(wanted, extents.inner);
  const std::int64_t tiles = (extents.inner + columns - 1) / columns;
  parallel_rows(extents.outer * tiles, extents.n * columns, [&](std::int64_t first, std::int64_t n) {
    for (std::int64_t item = first; item < first + n; ++item) {
      const std::int64_t column = item % tiles * columns;
      f(item / tiles * extents.n * extents.inner + column, std::min(columns, extents.inner - column));
    }
  });
}

void softmax_middle(const Tensor& x, bool log, const Tensor& y) {
  const checks::Middle extents = checks::softmax_middle(x, y);
  if (!is_fast(x)) return reference::kSoftmax.softmax_middle(x, log, y);
  if (x.numel() == 0) return;
  for_each_tile(extents, [&](std::int64_t begin, std::int64_t width) {
    loops().softmax_columns(input(x).from(begin), log, output(y).from(begin), extents.n, extents.inner, width);
  });
}

void softmax_middle_backward(const Tensor& y, bool log, const Tensor& dy, const Tensor& dx) {
  const checks::Middle extents = checks::softmax_middle_backward(y, dy, dx);
  if (!is_fast(y)) return reference::kSoftmax.softmax_middle_backward(y, log, dy, dx);
  if (y.numel() == 0) return;
  for_each_tile(extents, [&](std::int64_t begin, std::int64_t width) {
    loops().softmax_backward_columns(input(y).from(begin), log, input(dy).from(begin), output(dx).from(begin),
                                     extents.n, extents.inner, width);
  });
}

}  // namespace

const Softmax kSoftmax{.softmax = softmax,
                       .softmax_backward = softmax_backward,
                       .softmax_middle = softmax_middle,
                       .softmax_middle_backward = softmax_middle_backward};

}  // namespace lockstep::kernels::cpu
