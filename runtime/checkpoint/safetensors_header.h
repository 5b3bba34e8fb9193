// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

namespace lockstep::checkpoint {

/// A tensor as a safetensors header describes it. Offsets are bytes from the end of the header.
struct TensorEntry {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  std::size_t bytes() const { return static_cast<std::size_t>(end - begin); }
};

/// The JSON header of a safetensors file: an object of {dtype, shape, data_offsets} by tensor name, and "__metadata__",
/// an object of strings.
struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  ///< in the order of their data
  std::map<std::string, std::string> metadata;
};

/// Reads a header and checks it against the `data_bytes` that follow it: known dtypes, shapes that do not overflow,
/// sizes that agree with dtype x shape, data without holes or overlaps, no name twice. Stops at the first fault with a
/// StorageError that names `path` and the tensor.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes, const std::string& path);

/// The header as JSON, without padding. Throws UsageError on a name that is not UTF-8.
std::string format_safetensors_header(const SafetensorsHeader& header);

}  // namespace lockstep::checkpoint
