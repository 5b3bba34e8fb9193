// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/base/host_device.h"
#include "runtime/kernels/geometry/spatial.h"

namespace lockstep::kernels {

/// Positions [begin, end) along one axis.
struct PoolRange {
  std::int64_t begin;
  std::int64_t end;
  LOCKSTEP_HOST_DEVICE std::int64_t size() const { return end - begin; }
};

/// Pooling along one axis: which inputs lie under an output's window, and which windows an input lies under.
struct PoolAxis {
  std::int64_t in = 1;
  std::int64_t out = 1;
  std::int64_t window = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;

  LOCKSTEP_HOST_DEVICE PoolRange inputs_of(std::int64_t output) const {
    const std::int64_t begin = output * stride - padding;
    const std::int64_t end = begin + window;
    return {begin < 0 ? 0 : begin, end < in ? end : in};
  }

  /// Empty where the stride leaves the input out.
  LOCKSTEP_HOST_DEVICE PoolRange outputs_of(std::int64_t input) const {
    const std::int64_t place = input + padding;
    const std::int64_t end = place / stride + 1;
    return {place < window ? 0 : (place - window) / stride + 1, end < out ? end : out};
  }
};

/// Pooling brought to three spatial dimensions: missing ones come first, with extent 1.
struct PoolWindow {
  PoolAxis axes[3];
  bool count_include_pad;

  PoolWindow(const PoolGeometry& geometry, const Shape& x, const Shape& y)
      : count_include_pad(geometry.count_include_pad) {
    for (int d = 0; d < geometry.spatial_rank; ++d) {
      const auto from = static_cast<std::size_t>(d);
      axes[3 - geometry.spatial_rank + d] = {x[d + 1], y[d + 1], geometry.window[from], geometry.stride[from],
                                             geometry.padding[from]};
    }
  }

  LOCKSTEP_HOST_DEVICE std::int64_t in_pixels() const { return axes[0].in * axes[1].in * axes[2].in; }
  LOCKSTEP_HOST_DEVICE std::int64_t out_pixels() const { return axes[0].out * axes[1].out * axes[2].out; }

  /// The divisor of average pooling at output (d, h, w).
  LOCKSTEP_HOST_DEVICE float divisor(std::int64_t d, std::int64_t h, std::int64_t w) const {
    const std::int64_t count =
        count_include_pad ? axes[0].window * axes[1].window * axes[2].window
                          : axes[0].inputs_of(d).size() * axes[1].inputs_of(h).size() * axes[2].inputs_of(w).size();
    return static_cast<float>(count);
  }
};

}  // namespace lockstep::kernels
