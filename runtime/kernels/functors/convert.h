// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "runtime/tensor/half.h"

namespace lockstep::kernels {

/// A float whose last bit is set wherever something was cut off, so that rounding it to 16 bits gives what rounding the
/// double at once would have given. Through the nearest float the value would be rounded twice.
LOCKSTEP_HOST_DEVICE inline float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(nearest) == value) return nearest;
  const bool away = std::abs(static_cast<double>(nearest)) > std::abs(value);
  // One less in the bits is the next float towards 0; what was rounded away from 0 is not 0.
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(nearest) - (away ? 1u : 0u)) | 1u);
}

/// Converts between element types. To a floating type it rounds to nearest even, once. To an integer it truncates;
/// what lies outside the integer's range becomes its nearest end, NaN becomes 0. To bool: whether it differs from 0.
template <class To, class From>
LOCKSTEP_HOST_DEVICE To convert(From from) {
  if constexpr (std::same_as<To, From>) {
    return from;
  } else if constexpr (std::same_as<To, Half> || std::same_as<To, BFloat16>) {
    return To(round_to_odd(static_cast<double>(from)));
  } else if constexpr (std::same_as<To, bool>) {
    return static_cast<double>(from) != 0.0;
  } else if constexpr (std::integral<To> && !std::integral<From>) {
    const double value = static_cast<double>(from);
    if (std::isnan(value)) return 0;
    // The largest int64 is no double; comparing with >= against the next one up keeps the cast defined.
    if (value >= static_cast<double>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    if (value <= static_cast<double>(std::numeric_limits<To>::lowest())) return std::numeric_limits<To>::lowest();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(from);
  }
}

}  // namespace lockstep::kernels
