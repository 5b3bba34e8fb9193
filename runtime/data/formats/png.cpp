// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/png.h"

#include <png.h>

#include <cstring>

#include "runtime/base/error.h"

namespace lockstep::data {

namespace {

constexpr png_alloc_size_t kMostChunkBytes = 1 << 23;

/// libpng leaves by a jump where it fails: between attempt() and its calls no frame may own anything.
class PngDecoder {
 public:
  PngDecoder(std::span<const std::byte> file, const std::string& from) : from_(from), rest_(file) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, ignore);
    if (png_ == nullptr) throw StorageError(from_ + ": cannot be decoded: libpng does not start");
    info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw StorageError(from_ + ": cannot be decoded: libpng does not start");
    }
    png_set_read_fn(png_, this, read);
    png_set_chunk_malloc_max(png_, kMostChunkBytes);
    png_set_chunk_cache_max(png_, 8);
  }
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  png_structp png() { return png_; }
  png_infop info() { return info_; }

  /// Calls `call`, which may own nothing, and throws what libpng says where it fails.
  template <class Call>
  void attempt(const Call& call) {
    if (setjmp(png_jmpbuf(png_)) == 0) {
      call();
    } else {
      throw StorageError(from_ + ": cannot be decoded: " + message_,
                         "The file is damaged; fetch it again or remove it.");
    }
  }

 private:
  [[noreturn]] static void fail(png_structp png, png_const_charp message) {
    auto* const self = static_cast<PngDecoder*>(png_get_error_ptr(png));
    std::strncpy(self->message_, message, sizeof self->message_ - 1);
    png_longjmp(png, 1);
  }

  static void ignore(png_structp, png_const_charp) {}

  static void read(png_structp png, png_bytep out, std::size_t count) {
    auto* const self = static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (count > self->rest_.size()) png_error(png, "the file ends too early");
    std::memcpy(out, self->rest_.data(), count);
    self->rest_ = self->rest_.subspan(count);
  }

  const std::string& from_;
  std::span<const std::byte> rest_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  char message_[128] = {};
};

}  // namespace

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
  std::vector<png_bytep> rows;
  for (std::int64_t y = 0; y < image.height; ++y)
    rows.push_back(image.pixels.data() + static_cast<std::size_t>(y) * row);
  decoder.attempt([&] {
    png_read_image(png, rows.data());
    png_read_end(png, nullptr);
  });
  return image;
}

}  // namespace lockstep::data
