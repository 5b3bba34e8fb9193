// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/png.h"

#include "runtime/base/error.h"
#include "runtime/data/formats/png_decoder.h"

namespace lockstep::data {

DecodedImage decode_png(std::span<const std::byte> file, std::int64_t max_pixels, const ChooseView& choose,
                        const std::string& from) {
  PngDecoder decoder(file, from);
  const png_structp png = decoder.png();
  decoder.attempt([&] { png_read_info(png, decoder.info()); });
  DecodedImage image;
  image.width = png_get_image_width(png, decoder.info());
  image.height = png_get_image_height(png, decoder.info());
  require_pixels(image.width, image.height, max_pixels, from);
  image.view = choose(image.width, image.height);
  decoder.attempt([&] {
    png_set_expand(png);
    png_set_scale_16(png);
    png_set_gray_to_rgb(png);
    png_set_strip_alpha(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, decoder.info());
  });
  const std::size_t row = png_get_rowbytes(png, decoder.info());
  if (row != static_cast<std::size_t>(image.width) * 3) throw StorageError(from + ": does not become RGB");
  image.pixels.resize(row * static_cast<std::size_t>(image.height));
  decoder.read_rows(image.pixels.data(), row, image.height);
  return image;
}

}  // namespace lockstep::data
