// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/upsampling.h"

#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/geometry/upsampling.h"
#include "runtime/kernels/reference/families.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels::reference {

namespace {

/// Calls part(input element, output element, weight) for each input element that has a weight in an output element.
template <class Part>
void for_each_part(const UpsampleGeometry& geometry, const Shape& x, const Shape& y, Part part) {
  const std::array<UpsampleAxis, 3> axes = axes_of(geometry, x, y);
  const std::int64_t channels = x.back();
  const std::int64_t in_pixels = axes[0].in * axes[1].in * axes[2].in;
  std::int64_t out = 0;
  const auto add = [&](std::int64_t pixel, double weight) {
    for (std::int64_t c = 0; c < channels; ++c) {
      part(static_cast<std::size_t>(pixel * channels + c), static_cast<std::size_t>(out * channels + c), weight);
    }
  };
  const auto sides = [](const UpsampleTap& tap) {
    return std::array{std::pair{tap.first, 1 - tap.weight}, std::pair{tap.second, tap.weight}};
  };
  for (std::int64_t n = 0; n < x.front(); ++n) {
    for (std::int64_t i = 0; i < axes[0].out; ++i) {
      for (std::int64_t j = 0; j < axes[1].out; ++j) {
        for (std::int64_t k = 0; k < axes[2].out; ++k, ++out) {
          for (const auto& [a, weight_a] : sides(axes[0].tap(i))) {
            for (const auto& [b, weight_b] : sides(axes[1].tap(j))) {
              for (const auto& [c, weight_c] : sides(axes[2].tap(k))) {
                const double weight = weight_a * weight_b * weight_c;
                // The nearest pixel has one part, and nothing of it is a 0 that an infinity would make NaN.
                if (weight == 0) continue;
                add(n * in_pixels + (a * axes[1].in + b) * axes[2].in + c, weight);
              }
            }
          }
        }
      }
    }
  }
}

void upsample(const UpsampleGeometry& geometry, const Tensor& x, const Tensor& y) {
  checks::upsample(geometry, x, y);
  const Values in = load(x);
  Values out(static_cast<std::size_t>(y.numel()), 0.0);
  for_each_part(geometry, x.shape(), y.shape(),
                [&](std::size_t from, std::size_t to, double weight) { out[to] += weight * in[from]; });
  store(out, y);
}

void upsample_backward(const UpsampleGeometry& geometry, const Tensor& dy, const Tensor& dx) {
  checks::upsample(geometry, dx, dy);
  const Values out = load(dy);
  Values in(static_cast<std::size_t>(dx.numel()), 0.0);
  for_each_part(geometry, dx.shape(), dy.shape(),
                [&](std::size_t from, std::size_t to, double weight) { in[from] += weight * out[to]; });
  store(in, dx);
}

}  // namespace

const Upsampling kUpsampling{.upsample = upsample, .upsample_backward = upsample_backward};

}  // namespace lockstep::kernels::reference
