// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/inputs/whole_image.h"

#include <algorithm>
#include <cmath>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/base/files/stored_file.h"
#include "runtime/base/files/whole_file.h"
#include "runtime/data/formats/mask.h"
#include "runtime/data/formats/png_writer.h"
#include "runtime/data/formats/resample.h"
#include "runtime/data/image_view.h"

namespace lockstep::data {

namespace {

constexpr std::int64_t kColors = 3;

/// Where tiles of `size` begin that cover a line of `pixels`.
std::vector<std::int64_t> tile_starts(std::int64_t pixels, std::int64_t size) {
  std::vector<std::int64_t> starts;
  for (std::int64_t at = 0; at + size < pixels; at += size) starts.push_back(at);
  starts.push_back(pixels - size);
  return starts;
}

std::uint8_t pixel_of(float number, bool classes) {
  constexpr float kFull = 255;
  if (classes) return static_cast<std::uint8_t>(number < 0 ? kFull : number);
  return std::isnan(number) ? 0 : static_cast<std::uint8_t>(std::lround(std::clamp(number, 0.0f, 1.0f) * kFull));
}

}  // namespace

WholeImage::WholeImage(std::string path, const ImageCrop& crop) : WholeInput(std::move(path)) {
  const std::string content = StoredFile(this->path()).read_text(kMostImageBytes);
  const auto decoded = [&](std::int64_t left, std::int64_t top) {
    const auto choose = [&](std::int64_t width, std::int64_t height) {
      width_ = width;
      height_ = height;
      return view_at(width, height, crop.resize, crop.size, left, top);
    };
    return decode_image(std::as_bytes(std::span(content)), crop.max_pixels, choose, this->path(), crop.turning);
  };
  // Each tile is decoded as a training sample is, to the same values.
  DecodedImage image = decoded(0, 0);
  const std::int64_t shorter = std::min(width_, height_);
  scaled_width_ = scaled_pixels(width_, shorter, crop.resize);
  scaled_height_ = scaled_pixels(height_, shorter, crop.resize);
  // A strip of an image becomes far larger.
  require_pixels(scaled_width_, scaled_height_, crop.max_pixels, this->path() + ", scaled");
  values_.resize(static_cast<std::size_t>(scaled_width_ * scaled_height_ * kColors));
  std::vector<float> tile(static_cast<std::size_t>(crop.size * crop.size * kColors));
  for (const std::int64_t top : tile_starts(scaled_height_, crop.size)) {
    for (const std::int64_t left : tile_starts(scaled_width_, crop.size)) {
      if (left > 0 || top > 0) image = decoded(left, top);
      resample(image, tile);
      for (std::int64_t y = 0; y < crop.size; ++y) {
        std::copy_n(tile.begin() + y * crop.size * kColors, crop.size * kColors,
                    values_.begin() + ((top + y) * scaled_width_ + left) * kColors);
      }
    }
  }
}

void WholeImage::read(std::int64_t, const Sample& sample) const { std::ranges::copy(values_, sample.values.begin()); }

void WholeImage::write_answer(const std::string& to, const WholeAnswer& answer) const {
  std::vector<std::uint8_t> pixels(answer.numbers.size());
  std::ranges::transform(answer.numbers, pixels.begin(),
                         [&answer](float number) { return pixel_of(number, answer.classes); });
  const std::string png =
      png_of(scaled_nearest(pixels, scaled_width_, scaled_height_, width_, height_), width_, height_, 1);
  if (const std::error_code error = write_whole_file(to, png)) {
    throw StorageError("cannot write " + to + ": " + error.message());
  }
}

}  // namespace lockstep::data
