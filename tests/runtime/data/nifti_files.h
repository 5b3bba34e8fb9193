// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/runtime/data/sample_files.h"
#include "tests/support/hex.h"

// Writes small NIfTI-1 files for tests.

namespace lockstep::data {

template <class T>
void put(Bytes& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

/// file_of_hex() as bytes.
inline Bytes bytes_of_hex(const std::string& digits) {
  const std::string file = file_of_hex(digits);
  return {file.begin(), file.end()};
}

/// The header and no voxel: float32 of these extents, x first.
inline Bytes nifti_header(const std::vector<std::int16_t>& extents) {
  Bytes bytes(352);
  put(bytes, 0, std::int32_t{348});
  put(bytes, 40, static_cast<std::int16_t>(extents.size()));
  for (std::size_t d = 0; d < extents.size(); ++d) put(bytes, 42 + 2 * d, extents[d]);
  put(bytes, 70, std::int16_t{16});
  put(bytes, 72, std::int16_t{32});
  put(bytes, 108, 352.0f);
  std::memcpy(bytes.data() + 344, "n+1", 4);
  return bytes;
}

inline Bytes nifti_bytes(const std::vector<std::int16_t>& extents, const std::vector<float>& values) {
  Bytes bytes = nifti_header(extents);
  for (const float value : values) {
    bytes.resize(bytes.size() + sizeof value);
    put(bytes, bytes.size() - sizeof value, value);
  }
  return bytes;
}

}  // namespace lockstep::data
