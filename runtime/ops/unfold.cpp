// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/unfold.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/base/error.h"
#include "runtime/kernels/geometry/spatial.h"
#include "runtime/ops/dims.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/factories.h"
#include "runtime/ops/indexing.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

namespace {

/// int64 0, factor, 2 factor, ... [n], on x's device.
Tensor places(const Tensor& x, std::int64_t n, std::int64_t factor) {
  return mul(arange(n, {DType::kInt64, x.device()}), static_cast<double>(factor));
}

/// `options`, one for each of `count` dimensions.
std::vector<std::int64_t> each(const char* name, const std::vector<std::int64_t>& given, int count,
                               std::int64_t otherwise) {
  if (given.empty()) return std::vector<std::int64_t>(static_cast<std::size_t>(count), otherwise);
  if (static_cast<int>(given.size()) == count) return given;
  throw ShapeError(fmt::format("unfold: {} numbers for the {}, and {} spatial dimensions", given.size(), name, count));
}

}  // namespace

Tensor unfold(const Tensor& x, int dim_in, std::int64_t size, std::int64_t step) {
  const int dim = dim_of("unfold", dim_in, x);
  const Around whole(x.shape(), dim);
  if (size < 1 || step < 1 || size > whole.n || x.shape().rank() == 0) {
    throw ShapeError(
        fmt::format("unfold of {} along dimension {}: windows of {} elements every {}", describe(x), dim, size, step));
  }
  const std::int64_t windows = (whole.n - size) / step + 1;
  const Tensor at = add(unsqueeze(places(x, windows, step), 1), places(x, size, 1)).detach({windows * size});
  const Tensor picked =
      reshape(index_select(reshape(x, whole.shape()), 1, at), {whole.outer, windows, size, whole.inner});
  std::vector<std::int64_t> extents(x.shape().extents().begin(), x.shape().extents().end());
  extents[static_cast<std::size_t>(dim)] = windows;
  extents.push_back(size);
  return reshape(permute(picked, {0, 1, 3, 2}), Shape(extents));
}

Tensor unfold(const Tensor& x, const UnfoldOptions& options) {
  require_defined(x, "unfold", "x");
  const int spatial = x.shape().rank() - 2;
  if (spatial < 1 || spatial > 3) {
    throw ShapeError(
        fmt::format("unfold of {}: expected [N, spatial..., C] of 1 to 3 spatial dimensions", describe(x)));
  }
  const auto window = each("window", options.window, spatial, 0), stride = each("stride", options.stride, spatial, 1),
             padding = each("padding", options.padding, spatial, 0),
             dilation = each("dilation", options.dilation, spatial, 1);
  Tensor padded = x;
  std::int64_t windows = 1, elements = 1;
  std::vector<std::int64_t> counts;
  for (int d = 0; d < spatial; ++d) {
    const auto at = static_cast<std::size_t>(d);
    counts.push_back(kernels::output_extent(x.size(d + 1), window[at], stride[at], padding[at], dilation[at]));
    padded = pad(padded, d + 1, padding[at], padding[at]);
    windows *= counts.back();
    elements *= window[at];
  }
  // Where a window begins in the padded spatial dimensions as one, and where its elements lie from there.
  Tensor begins, offsets;
  std::int64_t pitch = 1;
  for (int d = spatial - 1; d >= 0; --d) {
    const auto at = static_cast<std::size_t>(d);
    for (auto [table, part] : {std::pair{&begins, places(x, counts[at], stride[at] * pitch)},
                               std::pair{&offsets, places(x, window[at], dilation[at] * pitch)}}) {
      *table = table->defined() ? add(unsqueeze(part, 1), *table).detach({part.numel() * table->numel()}) : part;
    }
    pitch *= padded.size(d + 1);
  }
  const Tensor rows = add(unsqueeze(begins, 1), offsets).detach({windows * elements});
  const std::int64_t n = x.size(0), channels = x.shape().back();
  return reshape(index_select(reshape(padded, {n, pitch, channels}), 1, rows), {n, windows, elements * channels});
}

}  // namespace lockstep::ops
