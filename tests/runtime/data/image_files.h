// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <jpeglib.h>
#include <png.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>

#include "tests/runtime/data/sample_files.h"

// Writes small images for tests.

namespace lockstep::data {

/// [height, width, channels]
struct Pixels {
  int width;
  int height;
  int channels;
  Bytes values;
};

/// Smooth, so that JPEG keeps it to a few steps of 255.
inline Pixels gradient(int width, int height, int channels = 3) {
  Pixels pixels{width, height, channels, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const int value = c == 0 ? 255 * x / width : c == 1 ? 255 * y / height : 128;
        pixels.values.push_back(static_cast<std::uint8_t>(value));
      }
    }
  }
  return pixels;
}

/// Grey, RGB or, of 4 channels, CMYK as Adobe writes it.
inline Bytes jpeg_bytes(Pixels pixels, bool progressive = false) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &out, &size);
  info.image_width = static_cast<JDIMENSION>(pixels.width);
  info.image_height = static_cast<JDIMENSION>(pixels.height);
  info.input_components = pixels.channels;
  info.in_color_space = pixels.channels == 1 ? JCS_GRAYSCALE : pixels.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 98, TRUE);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  for (int y = 0; y < pixels.height; ++y) {
    JSAMPROW row = pixels.values.data() + y * pixels.width * pixels.channels;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  Bytes bytes(out, out + size);
  std::free(out);
  return bytes;
}

/// A JPEG whose EXIF block says that a quarter turn clockwise makes it upright.
inline Bytes turned_jpeg_bytes(const Pixels& pixels) {
  constexpr std::uint8_t kSegment[] = {0xff, 0xe1, 0,    34, 'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8, 0,
                                       1,    1,    0x12, 0,  3,   0,   0,   0,   1, 0, 6,   0,   0, 0,  0, 0, 0, 0, 0};
  Bytes bytes = jpeg_bytes(pixels);
  bytes.insert(bytes.begin() + 2, std::begin(kSegment), std::end(kSegment));
  return bytes;
}

/// Of 1 to 4 channels: grey, grey with alpha, RGB, RGB with alpha.
inline Bytes png_bytes(const Pixels& pixels, bool interlaced = false) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  Bytes bytes;
  const auto write = [](png_structp to, png_bytep data, std::size_t size) {
    auto* const out = static_cast<Bytes*>(png_get_io_ptr(to));
    out->insert(out->end(), data, data + size);
  };
  png_set_write_fn(png, &bytes, write, nullptr);
  const int types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_IHDR(png, info, static_cast<png_uint_32>(pixels.width), static_cast<png_uint_32>(pixels.height), 8,
               types[pixels.channels - 1], interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_bytep> rows;
  for (int y = 0; y < pixels.height; ++y) {
    rows.push_back(const_cast<png_bytep>(pixels.values.data()) + y * pixels.width * pixels.channels);
  }
  png_set_rows(png, info, rows.data());
  png_write_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

}  // namespace lockstep::data
