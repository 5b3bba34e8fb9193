// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/grid_sample.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/base/error.h"
#include "runtime/ops/broadcast.h"
#include "runtime/ops/compare.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/factories.h"
#include "runtime/ops/indexing.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/unary.h"
#include "runtime/ops/without_autocast.h"

namespace lockstep::ops {

namespace {

/// The elements along one dimension that points are made of: their places, which are whole numbers, and weights; [P].
struct Tap {
  Tensor place;
  Tensor weight;
};

/// x between low and high, without a gradient where one of them holds it.
Tensor clamped(const Tensor& x, double low, double high) { return where(le(x, low), low, where(ge(x, high), high, x)); }

/// `x` mirrored at low and high until it lies between them.
Tensor mirrored(const Tensor& x, double low, double high) {
  const double span = high - low;
  if (span == 0) return full_like(x, low);
  const Tensor distance = abs(sub(x, low));
  const Tensor flips = floor(mul(distance, 1 / span));
  const Tensor beyond = sub(distance, mul(flips, span));
  const Tensor is_even = eq(sub(flips, mul(floor(mul(flips, 0.5)), 2)), 0);
  return add(where(is_even, beyond, sub(span, beyond)), low);
}

/// A coordinate in elements, of a dimension of n, moved inside where the padding says so.
Tensor inside(const Tensor& at, std::int64_t n, const GridOptions& options) {
  const auto last = static_cast<double>(n - 1);
  switch (options.padding) {
    case GridPadding::kZeros:
      // Farther out nothing changes, and infinity would leave no fraction.
      return clamped(at, -4, last + 4);
    case GridPadding::kBorder:
      return clamped(at, 0, last);
    case GridPadding::kReflection: {
      const double edge = options.align_corners ? 0 : 0.5;
      return clamped(mirrored(at, -edge, last + edge), 0, last);
    }
  }
  throw UsageError("grid_sample: no such padding");
}

// Keys' convolution kernel, a = -0.75, for a point between two elements: t behind the first, u = 1 - t before the
// second. As products, since sums of powers of t would cancel near 0. With t and u exchanged they are of the other
// side.
/// The weight of the first element.
Tensor inner(const Tensor& t, const Tensor& u) { return mul(u, add(mul(t, sub(1, mul(t, 1.25))), 1)); }
/// The weight of the element before the first one.
Tensor outer(const Tensor& t, const Tensor& u) { return mul(mul(mul(t, u), u), -0.75); }

std::vector<Tap> taps_of(const Tensor& coordinate, std::int64_t n, const GridOptions& options) {
  if (options.mode == GridMode::kNearest) {
    const Tensor at = inside(coordinate, n, options);
    return {{round(at).detach(), add(mul(at, 0), 1)}};
  }
  if (options.mode == GridMode::kLinear) {
    const Tensor at = inside(coordinate, n, options), first = floor(at).detach(), t = sub(at, first);
    return {{first, sub(1, t)}, {add(first, 1), t}};
  }
  // The other paddings move each of the four elements.
  const Tensor at = options.padding == GridPadding::kZeros ? inside(coordinate, n, options) : coordinate;
  const Tensor first = floor(at).detach(), t = sub(at, first), u = sub(1, t);
  std::vector<Tap> taps{
      {sub(first, 1), outer(t, u)}, {first, inner(t, u)}, {add(first, 1), inner(u, t)}, {add(first, 2), outer(u, t)}};
  for (Tap& tap : taps) tap.place = round(inside(tap.place, n, options)).detach();
  return taps;
}

/// The tap with int64 places, all within n elements: one outside has the weight 0. NaN stays NaN.
Tap within(const Tap& tap, std::int64_t n) {
  const Tensor there = mul(ge(tap.place, 0), lt(tap.place, static_cast<double>(n)));
  return {where(there, tap.place, 0).to(DType::kInt64), mul(tap.weight, there.to(tap.weight.dtype()))};
}

/// The sum over the elements that each point is made of: [P, C].
class Sampler {
 public:
  /// rows [N * spatial, C]; taps[d]: those of spatial dimension d, within().
  Sampler(const Tensor& rows, const Shape& extents, std::vector<std::vector<Tap>> taps)
      : rows_(rows), extents_(extents), taps_(std::move(taps)) {}

  /// `row`: of the sample, in the dimensions before d; `weight`: of the taps there, undefined for 1.
  void add_up(int d, const Tensor& row, const Tensor& weight) {
    if (d == extents_.rank()) {
      const Tensor term = mul(index_select(rows_, 0, row), unsqueeze(weight, 1));
      sum_ = sum_.defined() ? add(sum_, term) : term;
      return;
    }
    const auto n = static_cast<double>(extents_[d]);
    for (const Tap& tap : taps_[static_cast<std::size_t>(d)]) {
      add_up(d + 1, add(mul(row, n), tap.place), weight.defined() ? mul(weight, tap.weight) : tap.weight);
    }
  }
  const Tensor& sum() const { return sum_; }

 private:
  Tensor rows_;
  Shape extents_;
  std::vector<std::vector<Tap>> taps_;
  Tensor sum_;
};

void require_shapes(const Tensor& x, const Tensor& grid, const GridOptions& options) {
  const int spatial = x.shape().rank() - 2;
  bool fits = (spatial == 2 || spatial == 3) && grid.shape().rank() == x.shape().rank() &&
              grid.shape().back() == spatial && grid.size(0) == x.size(0);
  for (int d = 1; fits && d <= spatial; ++d) fits = x.size(d) >= 1;
  if (!fits) {
    throw ShapeError(fmt::format(
        "grid_sample of {} at {}: expected [N, spatial..., C] with 2 or 3 spatial dimensions that are not empty and "
        "[N, spatial'..., as many]",
        describe(x), describe(grid)));
  }
  if (options.mode == GridMode::kCubic && spatial != 2) {
    throw ShapeError(fmt::format("grid_sample of {}: cubic is for images alone", describe(x)));
  }
}

}  // namespace

Tensor grid_sample(const Tensor& input, const Tensor& input_grid, const GridOptions& options) {
  require_defined(input, "grid_sample", "x");
  require_defined(input_grid, "grid_sample", "the grid");
  require_shapes(input, input_grid, options);
  const Tensor x = amp::autocast_beside(amp::Op::kGridSample, input, input_grid);
  const Tensor grid = amp::autocast_beside(amp::Op::kGridSample, input_grid, input);
  const bool one_dtype = input.dtype() == input_grid.dtype() || (amp::Autocast::enabled() && x.dtype() == grid.dtype());
  if (!one_dtype || !is_floating(x.dtype())) {
    throw ShapeError(
        fmt::format("grid_sample of {} at {}: expected one floating dtype", describe(input), describe(input_grid)),
        "Cast the grid: grid.to(x.dtype()).");
  }
  const WithoutAutocast as_they_are;
  const DType wide = wide_of(x.dtype());
  const int spatial = x.shape().rank() - 2;
  const std::int64_t samples = x.size(0), channels = x.shape().back(), points = grid.numel() / spatial;
  const Tensor coordinates = autograd::cast(reshape(grid, {points, spatial}), wide);
  std::vector<std::vector<Tap>> taps;
  std::vector<std::int64_t> extents;
  for (int d = 0; d < spatial; ++d) {
    const std::int64_t n = x.size(d + 1);
    const auto extent = static_cast<double>(n);
    const Tensor at = select(coordinates, 1, spatial - 1 - d);
    const Tensor in_elements =
        options.align_corners ? mul(add(at, 1), (extent - 1) / 2) : mul(sub(mul(add(at, 1), extent), 1), 0.5);
    taps.push_back(taps_of(in_elements, n, options));
    for (Tap& tap : taps.back()) tap = within(tap, n);
    extents.push_back(n);
  }
  const Tensor rows = reshape(autograd::cast(x, wide), {samples * Shape(extents).numel(), channels});
  Sampler sampler(rows, Shape(extents), std::move(taps));
  const std::int64_t each = samples == 0 ? 0 : points / samples;
  const Tensor sample_of = expand(unsqueeze(arange(samples, {DType::kInt64, x.device()}), 1), {samples, each});
  sampler.add_up(0, sample_of.detach({points}), {});
  std::vector<std::int64_t> shape(grid.shape().extents().begin(), grid.shape().extents().end());
  shape.back() = channels;
  return autograd::cast(reshape(sampler.sum(), Shape(shape)), x.dtype());
}

}  // namespace lockstep::ops
