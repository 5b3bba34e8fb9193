// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::init {

inline constexpr std::size_t kSidesLookedAt = 64;  ///< images of a data set whose extents are read

/// What some images of a data set tell of all.
struct LookedAt {
  std::vector<std::int64_t> sides = {};  ///< the shorter ones, of images that can be read
  std::int64_t turned = 0;               ///< images that their EXIF block says to turn
  std::vector<std::string> errors = {};  ///< of images that cannot be read

  /// Adds the image in `bytes`, which messages call `image`.
  void add(std::span<const std::byte> bytes, const std::string& image);
  /// Of the sides, of which there is one.
  std::int64_t median_side() const;
};

/// Throws StorageError where images were looked at and none can be read.
void require_readable(const LookedAt& images);

/// A note for a person on images that have to be turned.
std::string note_of_turned(const LookedAt& images);

/// Has images turned upright where some have to be, and says so.
template <class Options>
void turn_upright(const LookedAt& images, Options& options, std::vector<std::string>& notes) {
  if (images.turned == 0) return;
  options.exif_orientation = true;
  notes.push_back(note_of_turned(images));
}

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
