// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/descriptor.h"

namespace lockstep {

/// A file that stays on disk and is read at any offset, from several threads at once. The system keeps in memory what
/// is read often. It is read, not mapped: a mapped file that is cut off or fails under a run ends the process by a
/// signal. Errors are StorageErrors that name the file and the byte.
class StoredFile {
 public:
  explicit StoredFile(std::string path);

  const std::string& path() const { return path_; }
  /// In bytes, when it was opened.
  std::uint64_t size() const { return size_; }
  /// Fills `out` with the bytes from `offset` on.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  /// All of it. Throws for one of more than `most` bytes.
  std::string read_text(std::uint64_t most) const;

 private:
  std::string path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

}  // namespace lockstep
