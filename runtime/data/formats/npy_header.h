// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/files/stored_file.h"

namespace lockstep::data {

/// The header of a .npy file, which stands before the array's elements.
struct NpyHeader {
  std::string descr;  ///< the element type: "<f4"
  bool fortran_order = false;
  std::vector<std::int64_t> extents;
  std::uint64_t bytes = 0;  ///< of the header: where the elements begin
};

/// Throws StorageError that names the file and the byte where it is no .npy header.
NpyHeader read_npy_header(const StoredFile& file);

}  // namespace lockstep::data
