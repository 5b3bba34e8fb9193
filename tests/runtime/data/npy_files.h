// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/runtime/data/sample_files.h"

// Writes small .npy files for tests.

namespace lockstep::data {

/// A .npy file as numpy.save writes it.
inline Bytes npy_bytes(const std::string& descr, const std::string& shape, const Bytes& elements, int version = 1,
                       const std::string& order = "False") {
  std::string text = "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  text.resize((text.size() / 64 + 1) * 64, ' ');
  text.back() = '\n';
  Bytes bytes{0x93, 'N', 'U', 'M', 'P', 'Y', static_cast<std::uint8_t>(version), 0};
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) bytes.push_back(static_cast<std::uint8_t>(text.size() >> 8 * i));
  bytes.insert(bytes.end(), text.begin(), text.end());
  bytes.insert(bytes.end(), elements.begin(), elements.end());
  return bytes;
}

template <class T>
Bytes elements_of(const std::vector<T>& values, bool big_endian = false) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  for (std::size_t at = 0; big_endian && at < bytes.size(); at += sizeof(T)) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + sizeof(T)));
  }
  return bytes;
}

}  // namespace lockstep::data
