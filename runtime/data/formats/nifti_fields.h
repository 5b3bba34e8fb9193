// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/data/formats/nifti_geometry.h"

namespace lockstep::data::nifti {

// Fields of NIfTI-1's header by their places, in bytes:
// https://nifti.nimh.nih.gov/pub/dist/src/niftilib/nifti1.h

inline constexpr std::size_t kHeaderBytes = 348;
inline constexpr std::size_t kDimensions = 40;  ///< int16 [8]: how many, then each
inline constexpr std::size_t kDataType = 70;
inline constexpr std::size_t kBitsOfNumber = 72;
inline constexpr std::size_t kPixelDimensions = 76;  ///< float32 [8]
inline constexpr std::size_t kVoxelOffset = 108;
inline constexpr std::size_t kSlope = 112;
inline constexpr std::size_t kIntercept = 116;
inline constexpr std::size_t kUnits = 123;
inline constexpr std::size_t kQform = 252;
inline constexpr std::size_t kSform = 254;
inline constexpr std::size_t kQuaternion = 256;  ///< float32 [3]
inline constexpr std::size_t kOffset = 268;      ///< float32 [3]
inline constexpr std::size_t kRows = 280;        ///< float32 [12]
inline constexpr std::size_t kMagic = 344;

/// `swapped`: the bytes come in another order than here.
template <class T>
T number_at(const std::uint8_t* bytes, bool swapped) {
  std::array<std::uint8_t, sizeof(T)> copy;
  std::copy_n(bytes, sizeof(T), copy.begin());
  if (swapped) std::ranges::reverse(copy);
  return std::bit_cast<T>(copy);
}

template <class T>
void put_number(T value, std::uint8_t* bytes) {
  std::memcpy(bytes, &value, sizeof value);
}

/// Calls `visit` with the place of each field of the geometry and the field.
template <class Geometry, class Visit>
void for_each_number(Geometry& geometry, const Visit& visit) {
  const auto visit_all = [&visit](auto& numbers, std::size_t at) {
    for (std::size_t i = 0; i < numbers.size(); ++i) visit(at + i * sizeof(float), numbers[i]);
  };
  visit_all(geometry.pixdim, kPixelDimensions);
  visit(kUnits, geometry.units);
  visit(kQform, geometry.qform);
  visit(kSform, geometry.sform);
  visit_all(geometry.quaternion, kQuaternion);
  visit_all(geometry.offset, kOffset);
  visit_all(geometry.rows, kRows);
}

}  // namespace lockstep::data::nifti
