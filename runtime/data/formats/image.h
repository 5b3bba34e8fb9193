// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::data {

/// Pixels of an image, counted from its upper left corner.
struct PixelBox {
  std::int64_t left = 0;
  std::int64_t top = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;
};

/// A view of an image: the part [left, left + width) x [top, top + height) in pixels, fractions
/// included, becomes size x size pixels. Filters see the pixels of `seen` alone, which holds that part.
struct ImageView {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
  PixelBox seen;
  std::int64_t size = 0;
};

/// The view of an image of this width and height.
using ChooseView = std::function<ImageView(std::int64_t width, std::int64_t height)>;

/// A decoded image, or the part that was needed: 8-bit RGB, rows without padding, and the view in its pixels.
struct DecodedImage {
  std::vector<std::uint8_t> pixels;  ///< [height, width, 3]
  std::int64_t width = 0;
  std::int64_t height = 0;
  ImageView view;
};

/// Whether pixels are taken as the file has them, or turned upright as its EXIF block says (orientation.h).
enum class Turning { kAsStored, kUpright };

/// Decodes what `choose` takes of a JPEG, PNG or WebP file's content, told apart by its first bytes. A JPEG is decoded
/// at the smallest of the scales 1, 1/2, 1/4 and 1/8 that has no fewer pixels than the view. An image of more than
/// `max_pixels` is refused before. `from` names it in messages. With kUpright, `choose` sees the extents of the upright
/// image. Throws StorageError for what is damaged or none of these.
DecodedImage decode_image(std::span<const std::byte> file, std::int64_t max_pixels, const ChooseView& choose,
                          const std::string& from, Turning turning = Turning::kAsStored);

/// Throws StorageError for an image without pixels or with more than `max_pixels`.
void require_pixels(std::int64_t width, std::int64_t height, std::int64_t max_pixels, const std::string& from);

}  // namespace lockstep::data
