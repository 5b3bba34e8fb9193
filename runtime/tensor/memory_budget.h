// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

/// Counts the host memory that the content of files takes, and refuses more than half of what this process may still
/// take: a growing array is copied, and a small packed file may hold more than any machine has.
class MemoryBudget {
 public:
  /// The room is looked at once more than 64 MiB are taken: most files never come to that.
  MemoryBudget() = default;
  /// A budget of so many bytes.
  explicit MemoryBudget(std::uint64_t bytes) : limit_(bytes) {}

  /// Throws StorageError, with the bytes asked for and those there are, where `bytes` more do not fit. `file` is the
  /// file that holds them.
  void take(std::uint64_t bytes, const std::string& file, std::string_view advice = {});

 private:
  std::uint64_t taken_ = 0;
  std::optional<std::uint64_t> limit_;
};

}  // namespace lockstep
