// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/data/formats/png_decoder.h"

namespace lockstep::data {

namespace {

/// The pixels of a line that lie under the centres of `size` pixels of its part [begin, begin + length).
std::vector<std::int64_t> under_centres(double begin, double length, std::int64_t size, std::int64_t pixels) {
  const double scale = length / static_cast<double>(size);
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < size; ++i) {
    const double centre = begin + (static_cast<double>(i) + 0.5) * scale;
    places.push_back(std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(centre)), 0, pixels - 1));
  }
  return places;
}

}  // namespace

MaskImage decode_mask(std::span<const std::byte> file, std::int64_t max_pixels, const std::string& from) {
  PngDecoder decoder(file, from);
  const png_structp png = decoder.png();
  decoder.attempt([&] { png_read_info(png, decoder.info()); });
  MaskImage mask;
  mask.width = png_get_image_width(png, decoder.info());
  mask.height = png_get_image_height(png, decoder.info());
  require_pixels(mask.width, mask.height, max_pixels, from);
  const int bits = png_get_bit_depth(png, decoder.info());
  const int kind = png_get_color_type(png, decoder.info());
  mask.is_palette = kind == PNG_COLOR_TYPE_PALETTE;
  if ((kind != PNG_COLOR_TYPE_GRAY && !mask.is_palette) || bits > 8) {
    throw StorageError(
        fmt::format(
            "{}: is {}, and no mask", from,
            bits > 8 ? fmt::format("of {} bits a channel", bits) : "an image of colours or with an alpha channel"),
        "A mask is a PNG of grey or of a palette, of 8 bits or fewer: a class or 0 and 255, a value a pixel.");
  }
  mask.full = static_cast<std::uint8_t>((1 << bits) - 1);
  decoder.attempt([&] {
    png_set_packing(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, decoder.info());
  });
  const std::size_t row = png_get_rowbytes(png, decoder.info());
  if (row != static_cast<std::size_t>(mask.width)) throw StorageError(from + ": does not become a byte a pixel");
  mask.values.resize(row * static_cast<std::size_t>(mask.height));
  decoder.read_rows(mask.values.data(), row, mask.height);
  return mask;
}

void take_nearest(const MaskImage& mask, const ImageView& view, std::span<std::uint8_t> out) {
  const std::vector<std::int64_t> columns = under_centres(view.left, view.width, view.size, mask.width);
  std::uint8_t* to = out.data();
  for (const std::int64_t y : under_centres(view.top, view.height, view.size, mask.height)) {
    const std::uint8_t* const row = mask.values.data() + y * mask.width;
    for (const std::int64_t x : columns) *to++ = row[x];
  }
}

std::vector<std::uint8_t> scaled_nearest(std::span<const std::uint8_t> values, std::int64_t width, std::int64_t height,
                                         std::int64_t to_width, std::int64_t to_height) {
  const std::vector<std::int64_t> columns = under_centres(0, static_cast<double>(width), to_width, width);
  std::vector<std::uint8_t> scaled;
  scaled.reserve(static_cast<std::size_t>(to_width * to_height));
  for (const std::int64_t y : under_centres(0, static_cast<double>(height), to_height, height)) {
    const std::uint8_t* const row = values.data() + y * width;
    for (const std::int64_t x : columns) scaled.push_back(row[x]);
  }
  return scaled;
}

}  // namespace lockstep::data
