// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/png_writer.h"

#include <png.h>

#include <csetjmp>
#include <stdexcept>
#include <vector>

#include "runtime/base/error.h"

namespace lockstep::data {

namespace {

void append_to_text(png_structp png, png_bytep data, std::size_t size) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(data), size);
}

/// libpng leaves by a jump where it fails: this frame owns nothing. Returns whether the image was written.
bool write_rows(png_structp png, png_infop info, png_bytepp rows, std::string* text, png_uint_32 width,
                png_uint_32 height, int color) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_write_fn(png, text, append_to_text, nullptr);
  png_set_IHDR(png, info, width, height, 8, color, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_set_rows(png, info, rows);
  png_write_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
  return true;
}

}  // namespace

std::string png_of(std::span<const std::uint8_t> pixels, std::int64_t width, std::int64_t height, int channels) {
  const std::size_t row = static_cast<std::size_t>(width) * static_cast<std::size_t>(channels);
  if (width < 1 || height < 1 || (channels != 1 && channels != 3) ||
      row * static_cast<std::size_t>(height) != pixels.size()) {
    throw std::invalid_argument("png_of: pixels of other extents");
  }
  std::vector<png_bytep> rows;
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) {
    rows.push_back(const_cast<png_bytep>(pixels.data()) + y * row);
  }
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  std::string text;
  const bool written = info != nullptr && write_rows(png, info, rows.data(), &text, static_cast<png_uint_32>(width),
                                                     static_cast<png_uint_32>(height),
                                                     channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY);
  png_destroy_write_struct(&png, &info);
  if (!written) throw StorageError("an image cannot be written: libpng fails");
  return text;
}

}  // namespace lockstep::data
