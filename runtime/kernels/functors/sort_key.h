// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "runtime/base/host_device.h"
#include "runtime/tensor/half.h"

namespace lockstep::kernels {

/// The unsigned integer of T's size.
template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                  std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                                     std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

/// Infinity's bits; those of a NaN, without the sign, are greater.
template <class T>
inline constexpr BitsOf<T> kInfinityBits = static_cast<BitsOf<T>>(sizeof(T) == 8                ? 0x7ff0000000000000u
                                                                  : sizeof(T) == 4              ? 0x7f800000u
                                                                  : std::is_same_v<T, BFloat16> ? 0x7f80u
                                                                                                : 0x7c00u);

/// An unsigned integer that is smaller where x comes earlier in ascending order. Of floating dtypes -0 is 0, and a NaN
/// comes behind every number, whatever its bits are. `descending`: in descending order, where NaN comes first.
template <class T>
LOCKSTEP_HOST_DEVICE inline BitsOf<T> sort_key(T x, bool descending) {
  using Bits = BitsOf<T>;
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(T) - 1));
  constexpr Bits kAll = static_cast<Bits>(~Bits{0});
  Bits key;
  if constexpr (std::is_integral_v<T>) {
    key = std::is_signed_v<T> ? static_cast<Bits>(static_cast<Bits>(x) ^ kSign) : static_cast<Bits>(x);
  } else {
    // No comparison of floating numbers: 16 bits would have to be converted.
    const Bits bits = std::bit_cast<Bits>(x), magnitude = static_cast<Bits>(bits & ~kSign);
    key = (bits & kSign) != 0 ? static_cast<Bits>(~bits) : static_cast<Bits>(bits | kSign);
    key = magnitude == 0 ? kSign : key;
    key = magnitude > kInfinityBits<T> ? kAll : key;
  }
  return descending ? static_cast<Bits>(~key) : key;
}

}  // namespace lockstep::kernels
