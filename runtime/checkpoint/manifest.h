// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/checkpoint/checksum.h"

namespace lockstep::checkpoint {

/// The parts of a checkpoint. As a file it is JSON that ends with the checksum of its own text, so that a single
/// changed byte anywhere in it is seen. It is written last and deleted first: where it is, the rest is whole.
struct Manifest {
  static constexpr std::uint64_t kVersion = 1;

  std::uint64_t step = 0;
  std::map<std::string, Digest> files;
  std::map<std::string, Digest> tensors;

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// The manifest is whole, and its format is none that this program reads.
class FormatVersionError : public StorageError {
 public:
  using StorageError::StorageError;
};

std::string format_manifest(const Manifest& manifest);

/// Throws StorageError that names `path` on a damaged or malformed text, FormatVersionError on one of another version.
Manifest parse_manifest(std::string_view text, const std::string& path);

}  // namespace lockstep::checkpoint
