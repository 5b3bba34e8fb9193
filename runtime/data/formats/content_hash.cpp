// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/content_hash.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/base/files/stored_file.h"

namespace lockstep::data {

namespace {

constexpr std::uint64_t kHashedAtOnce = std::uint64_t{1} << 20;
constexpr std::uint64_t kSampledBlock = std::uint64_t{64} << 10;
constexpr std::uint64_t kBlocks = 64;
constexpr const char* kUnreadable = "unreadable";

/// Adds [begin, end) of one part.
void add_range(const Parts& parts, std::size_t part, std::uint64_t begin, std::uint64_t end,
               std::vector<std::byte>& buffer, Hash128& hash) {
  try {
    while (begin < end) {
      buffer.resize(std::min(end - begin, kHashedAtOnce));
      parts.read(part, begin, buffer);
      hash.update(buffer);
      begin += buffer.size();
    }
  } catch (const StorageError&) {
    hash.update(kUnreadable);
  }
}

void add_all(const Parts& parts, Hash128& hash) {
  std::vector<std::byte> buffer;
  for (std::size_t part = 0; part < parts.bytes.size(); ++part) {
    add_range(parts, part, 0, parts.bytes[part], buffer, hash);
  }
}

void add_blocks(const Parts& parts, std::uint64_t blocks, Hash128& hash) {
  std::vector<std::uint64_t> ends(parts.bytes.size());
  std::inclusive_scan(parts.bytes.begin(), parts.bytes.end(), ends.begin());
  std::vector<std::byte> buffer;
  for (const std::uint64_t block : spread((ends.back() + kSampledBlock - 1) / kSampledBlock, blocks)) {
    std::uint64_t at = block * kSampledBlock;
    const std::uint64_t end = std::min(at + kSampledBlock, ends.back());
    auto part = static_cast<std::size_t>(std::ranges::upper_bound(ends, at) - ends.begin());
    for (; at < end; ++part) {
      const std::uint64_t first = ends[part] - parts.bytes[part];
      const std::uint64_t last = std::min(end, ends[part]);
      add_range(parts, part, at - first, last - first, buffer, hash);
      at = last;
    }
  }
}

/// Content of more than `most` bytes is hashed in so many blocks.
void add(const Parts& parts, std::uint64_t most, std::uint64_t blocks, Hash128& hash) {
  hash.update(std::as_bytes(std::span(parts.bytes)));
  const std::uint64_t total = std::accumulate(parts.bytes.begin(), parts.bytes.end(), std::uint64_t{0});
  total <= most ? add_all(parts, hash) : add_blocks(parts, blocks, hash);
}

}  // namespace

void add_parts(const Parts& parts, Hash128& hash) { add(parts, kMostHashedBytes, kBlocks, hash); }

void add_sample_of_parts(const Parts& parts, std::uint64_t blocks, Hash128& hash) {
  add(parts, blocks * kSampledBlock, blocks, hash);
}

void add_bytes(std::span<const std::byte> bytes, Hash128& hash) {
  const auto read = [bytes](std::size_t, std::uint64_t offset, std::span<std::byte> out) {
    std::memcpy(out.data(), bytes.data() + offset, out.size());
  };
  add_parts({{bytes.size()}, read}, hash);
}

void add_file(const std::string& path, std::uint64_t most, Hash128& hash) {
  try {
    const StoredFile file(path);
    const auto read = [&file](std::size_t, std::uint64_t offset, std::span<std::byte> out) { file.read(offset, out); };
    const std::uint64_t size = file.size();
    hash.update(std::as_bytes(std::span(&size, 1)));
    add_parts({{std::min(size, most)}, read}, hash);
  } catch (const StorageError&) {
    hash.update(kUnreadable);
  }
}

void add_sample_of_file(const std::string& path, std::uint64_t blocks, Hash128& hash) {
  try {
    const StoredFile file(path);
    const auto read = [&file](std::size_t, std::uint64_t offset, std::span<std::byte> out) { file.read(offset, out); };
    add_sample_of_parts({{file.size()}, read}, blocks, hash);
  } catch (const StorageError&) {
    hash.update(kUnreadable);
  }
}

void add_files(const std::vector<std::string>& paths, Hash128& hash) {
  Parts parts;
  for (const std::string& path : paths) {
    std::error_code failure;
    const std::uintmax_t size = std::filesystem::file_size(path, failure);
    parts.bytes.push_back(failure ? 0 : size);
  }
  parts.read = [&paths](std::size_t file, std::uint64_t offset, std::span<std::byte> out) {
    StoredFile(paths[file]).read(offset, out);
  };
  add_parts(parts, hash);
}

std::vector<std::uint64_t> spread(std::uint64_t count, std::uint64_t most) {
  std::vector<std::uint64_t> chosen;
  for (std::uint64_t i = 0; i < std::min(count, most); ++i) {
    if (count <= most) {
      chosen.push_back(i);
      continue;
    }
    const auto begin = [&](std::uint64_t range) { return count / most * range + count % most * range / most; };
    // Multiples of the golden ratio fill [0, 1) evenly.
    const auto fraction = static_cast<double>(static_cast<std::uint32_t>(i * 0x9E3779B9u)) * 0x1p-32;
    chosen.push_back(begin(i) + static_cast<std::uint64_t>(fraction * static_cast<double>(begin(i + 1) - begin(i))));
  }
  if (count > most) chosen.back() = count - 1;
  return chosen;
}

}  // namespace lockstep::data
