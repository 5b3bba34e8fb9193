// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "runtime/base/host_device.h"

namespace lockstep::kernels {

/// An output pixel along one dimension: (1 - weight) of input pixel `first` plus `weight` of input pixel `second`.
struct UpsampleTap {
  std::int64_t first;
  std::int64_t second;
  double weight;
};

/// One spatial dimension: how `out` pixels are made of `in`. PyTorch's coordinates: a pixel covers [i, i + 1), and the
/// source of an output pixel's centre is its place times `step`; with aligned corners the centres of the first and the
/// last pixels coincide. The nearest pixel is found in float32 whatever the tensor's dtype is, as there, because the
/// rounding decides between two pixels.
struct UpsampleAxis {
  std::int64_t in;
  std::int64_t out;
  bool nearest;
  bool align_corners;
  double step;  ///< input pixels per output pixel

  static UpsampleAxis of(std::int64_t in, std::int64_t out, bool nearest, bool align_corners, double scale_factor) {
    double step = scale_factor > 0 ? 1.0 / scale_factor : static_cast<double>(in) / static_cast<double>(out);
    if (!nearest && align_corners) step = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0;
    if (nearest && scale_factor <= 0) step = static_cast<double>(static_cast<float>(in) / static_cast<float>(out));
    return {in, out, nearest, align_corners, step};
  }

  /// first <= second <= first + 1; both grow with `at`.
  LOCKSTEP_HOST_DEVICE UpsampleTap tap(std::int64_t at) const {
    if (in == out) return {at, at, 0.0};
    if (nearest) {
      // A doubling is exact whatever the scale factor says.
      const std::int64_t pixel =
          out == 2 * in ? at / 2
                        : static_cast<std::int64_t>(std::floor(static_cast<float>(at) * static_cast<float>(step)));
      const std::int64_t inside = pixel < in - 1 ? pixel : in - 1;
      return {inside, inside, 0.0};
    }
    const double place = static_cast<double>(at);
    double source = align_corners ? step * place : step * (place + 0.5) - 0.5;
    if (source < 0) source = 0;
    std::int64_t first = static_cast<std::int64_t>(std::floor(source));
    if (first > in - 1) first = in - 1;
    const double beyond = source - static_cast<double>(first);
    return {first, first < in - 1 ? first + 1 : first, beyond < 1 ? beyond : 1.0};
  }

  /// The output pixels that `pixel` of the input has a part in are [first_use(pixel), end_of_use(pixel)).
  LOCKSTEP_HOST_DEVICE std::int64_t first_use(std::int64_t pixel) const {
    return first_that([&](std::int64_t at) { return tap(at).second >= pixel; });
  }
  LOCKSTEP_HOST_DEVICE std::int64_t end_of_use(std::int64_t pixel) const {
    return first_that([&](std::int64_t at) { return tap(at).first > pixel; });
  }

  /// How much of input pixel `pixel` is in output pixel `at`.
  LOCKSTEP_HOST_DEVICE double part(std::int64_t pixel, std::int64_t at) const {
    const UpsampleTap of = tap(at);
    return (of.first == pixel ? 1 - of.weight : 0.0) + (of.second == pixel ? of.weight : 0.0);
  }

 private:
  /// The first output pixel for which `holds` is true; `out` where there is none. All pixels after it must satisfy it.
  template <class Holds>
  LOCKSTEP_HOST_DEVICE std::int64_t first_that(Holds holds) const {
    std::int64_t begin = 0;
    std::int64_t end = out;
    while (begin < end) {
      const std::int64_t middle = begin + (end - begin) / 2;
      if (holds(middle)) {
        end = middle;
      } else {
        begin = middle + 1;
      }
    }
    return begin;
  }
};

}  // namespace lockstep::kernels
