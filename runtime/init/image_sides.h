// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::init {

inline constexpr std::size_t kSidesLookedAt = 64;  ///< images of a data set whose extents are read

/// The shorter side, in pixels, of the JPEG or PNG image in `bytes`. Throws StorageError, which names `image`, where
/// the image is damaged.
std::int64_t shorter_side(std::span<const std::byte> bytes, const std::string& image);

std::int64_t median_of(std::vector<std::int64_t> sides);

/// Sets what small images need in ImageFolderOptions or ShardsOptions: they are taken whole. Networks halve the
/// extents.
template <class Options>
void take_whole_if_small(std::int64_t side, Options& options) {
  if (side >= 256) return;
  options.size = side >= 64 ? side / 32 * 32 : side;
  options.resize = options.size;
}

/// A note for a person on images of this shorter side.
std::string note_of_side(std::int64_t side);

}  // namespace lockstep::init
