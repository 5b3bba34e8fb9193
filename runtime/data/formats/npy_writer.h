// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/tensor/shape.h"

namespace lockstep::data {

/// The header of a .npy file, version 1.0 of NumPy's format, behind which the elements stand, row-major and aligned to
/// 64 bytes. `descr`: NumPy's text of the element type, "<f4".
std::string npy_header(const std::string& descr, std::span<const std::int64_t> extents);

// Each writes one .npy file, whole or not at all. They throw StorageError, and ShapeError for another number of
// elements than the shape has.

void write_npy(const std::string& path, const Shape& shape, std::span<const float> values);
void write_npy(const std::string& path, const Shape& shape, std::span<const std::uint8_t> values);
void write_npy(const std::string& path, const Shape& shape, std::span<const std::int32_t> values);

}  // namespace lockstep::data
