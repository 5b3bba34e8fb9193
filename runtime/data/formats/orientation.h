// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "runtime/data/formats/image.h"

namespace lockstep::data {

/// How the pixels of a file have to be turned to be upright: EXIF's tag 0x0112 (CIPA DC-008, 4.6.5).
enum class Orientation {
  kUpright = 1,
  kMirrored = 2,             ///< left to right
  kTurned180 = 3,            ///< by half a turn
  kMirroredDown = 4,         ///< top to bottom
  kTransposed = 5,           ///< rows are columns
  kTurned90 = 6,             ///< by a quarter turn clockwise
  kTransposedTurned180 = 7,  ///< rows are columns, then by half a turn
  kTurned270 = 8,            ///< by a quarter turn counterclockwise
};

/// The orientation that a JPEG, PNG or WebP file's EXIF block says; kUpright where it has none, or one that is damaged
/// or names no orientation, as PIL takes it. Looks at no pixel.
Orientation orientation_of(std::span<const std::byte> file);

/// Whether width and height change places.
bool swaps_sides(Orientation orientation);

/// The view of the file's pixels, width x height of them, that shows `view` of the upright image.
ImageView stored_view(const ImageView& view, Orientation orientation, std::int64_t width, std::int64_t height);

/// Turns pixels and view of what a file holds upright: PIL's ImageOps.exif_transpose.
DecodedImage upright(DecodedImage stored, Orientation orientation);

}  // namespace lockstep::data
