// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/hash.h"

namespace lockstep::data {

/// Content in parts, one behind the other: files, members of an archive, arrays.
struct Parts {
  std::vector<std::uint64_t> bytes = {};  ///< of each
  /// Fills `out` with the bytes of a part from `offset` on. May throw StorageError.
  std::function<void(std::size_t part, std::uint64_t offset, std::span<std::byte> out)> read = {};
};

/// Content of more bytes is hashed in samples.
inline constexpr std::uint64_t kMostHashedBytes = std::uint64_t{256} << 20;

/// Adds the sizes of all parts, and their content: all of it, or of more than kMostHashedBytes 64 blocks of 64 KiB,
/// spread() over it. Content that cannot be read counts as such: who draws the sample says what is wrong with it.
void add_parts(const Parts& parts, Hash128& hash);

/// Adds the sizes of all parts, and up to `blocks` >= 2 blocks of 64 KiB of their content: all of it, or the first, the
/// last and others that are spread() between.
void add_sample_of_parts(const Parts& parts, std::uint64_t blocks, Hash128& hash);

/// Adds the content of memory.
void add_bytes(std::span<const std::byte> bytes, Hash128& hash);

/// Adds the content of a file, of which it reads no more than the first `most` bytes.
void add_file(const std::string& path, std::uint64_t most, Hash128& hash);

/// Adds the size of a file and up to `blocks` blocks of it, as add_sample_of_parts() does.
void add_sample_of_file(const std::string& path, std::uint64_t blocks, Hash128& hash);

/// Adds the content of all these files.
void add_files(const std::vector<std::string>& paths, Hash128& hash);

/// At most `most` >= 2 of the numbers 0 .. count - 1, ascending and always the same: all of them; or the first, the
/// last and one of each of equal ranges between, at places without a period.
std::vector<std::uint64_t> spread(std::uint64_t count, std::uint64_t most);

}  // namespace lockstep::data
