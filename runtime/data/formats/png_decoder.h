// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <png.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace lockstep::data {

/// Reads a PNG from memory. libpng leaves by a jump where it fails: between attempt() and its calls no frame may own
/// anything.
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
    png_set_chunk_malloc_max(png_, 1 << 23);
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

  /// Reads `height` rows of `row` bytes, and what follows them.
  void read_rows(std::uint8_t* out, std::size_t row, std::int64_t height) {
    std::vector<png_bytep> rows;
    for (std::int64_t y = 0; y < height; ++y) rows.push_back(out + static_cast<std::size_t>(y) * row);
    attempt([&] {
      png_read_image(png_, rows.data());
      png_read_end(png_, nullptr);
    });
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

}  // namespace lockstep::data
