// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/formats/image.h"

namespace lockstep::data {

/// The values of a mask, one a pixel: those of a grey image as they are, those of a palette its indices.
struct MaskImage {
  std::vector<std::uint8_t> values;  ///< [height, width]
  std::int64_t width = 0;
  std::int64_t height = 0;
  bool is_palette = false;
  std::uint8_t full = 255;  ///< the highest value that so many bits a pixel have
};

/// Decodes a PNG of grey or of a palette, of 8 bits or fewer. A mask of more than `max_pixels` is refused before.
/// `from` names it in messages. Throws StorageError for what is damaged and for other kinds of PNG: colours name no
/// class.
MaskImage decode_mask(std::span<const std::byte> file, std::int64_t max_pixels, const std::string& from);

/// Writes the view of the mask as [size, size]: of each of its pixels the value of the mask's that lies under its
/// centre, as PIL's NEAREST takes it.
void take_nearest(const MaskImage& mask, const ImageView& view, std::span<std::uint8_t> out);

/// Values [height, width] as [to_height, to_width], each the one that lies under the centre of the pixel.
std::vector<std::uint8_t> scaled_nearest(std::span<const std::uint8_t> values, std::int64_t width, std::int64_t height,
                                         std::int64_t to_width, std::int64_t to_height);

}  // namespace lockstep::data
