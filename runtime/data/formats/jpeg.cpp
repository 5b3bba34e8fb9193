// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/jpeg.h"

#include <jpeglib.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdio>
// Needs jpeglib.h before it.
#include <jerror.h>

#include "runtime/base/error.h"

namespace lockstep::data {

namespace {

/// libjpeg leaves by a jump where it fails: between attempt() and its calls no frame may own anything.
struct ErrorManager : jpeg_error_mgr {
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* const errors = static_cast<ErrorManager*>(info->err);
  errors->format_message(info, errors->message);
  std::longjmp(errors->jump, 1);
}

/// libjpeg goes on behind damage with grey pixels; for training that is no image.
void heed_warning(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:  // bytes between two segments, which many cameras write
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
      return;
    default:
      leave(info);
  }
}

/// A progressive image has some ten scans; a small file may hold millions, each of which costs a pass over the image.
void limit_scans(j_common_ptr info) {
  constexpr int kMostScans = 500;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  auto* const errors = static_cast<ErrorManager*>(info->err);
  std::snprintf(errors->message, sizeof errors->message, "more than %d scans", kMostScans);
  std::longjmp(errors->jump, 1);
}

class JpegDecoder {
 public:
  explicit JpegDecoder(const std::string& from) : from_(from) {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = leave;
    errors_.emit_message = heed_warning;
    attempt([this] { jpeg_create_decompress(&info_); });
    progress_.progress_monitor = limit_scans;
    info_.progress = &progress_;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&info_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  jpeg_decompress_struct& info() { return info_; }

  /// Calls `call`, which may own nothing, and throws what libjpeg says where it fails.
  template <class Call>
  void attempt(const Call& call) {
    if (setjmp(errors_.jump) == 0) {
      call();
    } else {
      throw StorageError(from_ + ": cannot be decoded: " + errors_.message,
                         "The file is damaged; fetch it again or remove it.");
    }
  }

 private:
  const std::string& from_;
  jpeg_decompress_struct info_{};
  ErrorManager errors_{};
  jpeg_progress_mgr progress_{};
};

/// The most times that libjpeg may shrink the image with its view still no smaller than the size that is asked for.
unsigned scale_of(const ImageView& view) {
  for (const unsigned scale : {8u, 4u, 2u}) {
    const double least = static_cast<double>(view.size) * scale;
    if (view.width >= least && view.height >= least) return scale;
  }
  return 1;
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The view of an image that is `scale` times smaller, with `width` x `height` pixels.
ImageView scaled_view(ImageView view, std::int64_t scale, std::int64_t width, std::int64_t height) {
  for (double* length : {&view.left, &view.top, &view.width, &view.height}) *length /= static_cast<double>(scale);
  PixelBox& seen = view.seen;
  const std::int64_t right = std::min(divide_up(seen.left + seen.width, scale), width);
  const std::int64_t bottom = std::min(divide_up(seen.top + seen.height, scale), height);
  seen.left /= scale;
  seen.top /= scale;
  seen.width = right - seen.left;
  seen.height = bottom - seen.top;
  return view;
}

/// `inverted`: as Adobe stores them, 255 is no ink.
void cmyk_to_rgb(std::uint8_t* out, const std::uint8_t* in, std::int64_t count, bool inverted) {
  for (; count > 0; --count, in += 4, out += 3) {
    const unsigned black = inverted ? in[3] : 255u - in[3];
    for (int c = 0; c < 3; ++c) {
      const unsigned ink = inverted ? in[c] : 255u - in[c];
      out[c] = static_cast<std::uint8_t>(ink * black / 255);
    }
  }
}

}  // namespace

DecodedImage decode_jpeg(std::span<const std::byte> file, std::int64_t max_pixels, const ChooseView& choose,
                         const std::string& from) {
  JpegDecoder decoder(from);
  jpeg_decompress_struct& info = decoder.info();
  decoder.attempt([&] {
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&info, TRUE);
  });
  require_pixels(info.image_width, info.image_height, max_pixels, from);
  const ImageView chosen = choose(info.image_width, info.image_height);
  const bool four_inks = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = four_inks ? JCS_CMYK : JCS_RGB;
  info.scale_num = 1;
  info.scale_denom = scale_of(chosen);
  decoder.attempt([&] { jpeg_start_decompress(&info); });

  DecodedImage image;
  image.view = scaled_view(chosen, info.scale_denom, info.output_width, info.output_height);
  PixelBox& seen = image.view.seen;
  // Columns come from whole blocks on.
  auto left = static_cast<JDIMENSION>(seen.left);
  auto width = static_cast<JDIMENSION>(seen.width);
  decoder.attempt([&] {
    jpeg_crop_scanline(&info, &left, &width);
    if (seen.top > 0) jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(seen.top));
  });
  image.width = width;
  image.height = seen.height;
  image.pixels.resize(static_cast<std::size_t>(image.height * image.width * 3));
  std::vector<std::uint8_t> inks(four_inks ? static_cast<std::size_t>(image.width) * 4 : 0);
  decoder.attempt([&] {
    for (std::int64_t y = 0; y < image.height; ++y) {
      std::uint8_t* const row = image.pixels.data() + y * image.width * 3;
      JSAMPROW target = four_inks ? inks.data() : row;
      jpeg_read_scanlines(&info, &target, 1);
      if (four_inks) cmyk_to_rgb(row, inks.data(), image.width, info.saw_Adobe_marker == TRUE);
    }
  });
  // The view in what was decoded, which begins at column `left`.
  image.view.left -= left;
  image.view.top -= static_cast<double>(seen.top);
  seen.left -= left;
  seen.top = 0;
  return image;
}

}  // namespace lockstep::data
