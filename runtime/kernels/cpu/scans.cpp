// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/scans.h"

#include <algorithm>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/fast_dtypes.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/geometry/structure_checks.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

namespace {

void scan(const Tensor& a, const Tensor& b, bool reverse, const Tensor& y) {
  const checks::Middle extents = checks::scan(a, b, y);
  if (!is_fast(y)) return reference::kScans.scan(a, b, reverse, y);
  if (y.numel() == 0) return;
  const auto from = [](const Tensor& tensor, std::int64_t begin) {
    return tensor.defined() ? input(tensor).from(begin) : input(tensor);
  };
  if (extents.inner == 1) {
    return parallel_rows(extents.outer, extents.n, [&](std::int64_t first, std::int64_t lines) {
      const std::int64_t begin = first * extents.n;
      loops().scan_lines(from(a, begin), from(b, begin), reverse, output(y).from(begin), lines, extents.n);
    });
  }
  constexpr std::int64_t kColumns = 512;
  const std::int64_t tiles = (extents.inner + kColumns - 1) / kColumns;
  parallel_rows(extents.outer * tiles, extents.n * std::min(kColumns, extents.inner),
                [&](std::int64_t first, std::int64_t n) {
                  for (std::int64_t item = first; item < first + n; ++item) {
                    const std::int64_t column = item % tiles * kColumns;
                    const std::int64_t begin = item / tiles * extents.n * extents.inner + column;
                    loops().scan_columns(from(a, begin), from(b, begin), reverse, output(y).from(begin), extents.n,
                                         extents.inner, std::min(kColumns, extents.inner - column));
                  }
                });
}

}  // namespace

const Scans kScans{.scan = scan};

}  // namespace lockstep::kernels::cpu
