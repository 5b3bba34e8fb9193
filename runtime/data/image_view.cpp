// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/image_view.h"

#include <algorithm>
#include <cmath>

#include "runtime/data/draw.h"

namespace lockstep::data {

namespace {

constexpr std::uint32_t kAttempts = 10;

/// Where a crop of `size` of a line of `pixels`, scaled to `scaled`, lies in the line. `from`: its first scaled pixel.
struct CropSpan {
  CropSpan(std::int64_t pixels, std::int64_t scaled, std::int64_t size, double from) {
    const double scale = static_cast<double>(pixels) / static_cast<double>(scaled);
    begin = from * scale;
    length = static_cast<double>(size) * scale;
    // The filter's triangle reaches so far.
    const auto margin = static_cast<std::int64_t>(std::ceil(scale)) + 1;
    first = std::max<std::int64_t>(static_cast<std::int64_t>(std::floor(begin)) - margin, 0);
    last = std::min(static_cast<std::int64_t>(std::ceil(begin + length)) + margin, pixels);
  }

  double begin;
  double length;
  std::int64_t first;
  std::int64_t last;
};

/// The view of a random crop: filters see nothing outside `box`, unlike in center_view().
ImageView view_of(const PixelBox& box, std::int64_t size) {
  return {static_cast<double>(box.left),
          static_cast<double>(box.top),
          static_cast<double>(box.width),
          static_cast<double>(box.height),
          box,
          size};
}

}  // namespace

ImageView center_view(std::int64_t width, std::int64_t height, std::int64_t resize, std::int64_t size) {
  return window_view(width, height, resize, size, WindowPlace::kMiddle, {});
}

ImageView window_view(std::int64_t width, std::int64_t height, std::int64_t resize, std::int64_t size,
                      WindowPlace place, const SampleKey& key) {
  const std::int64_t shorter = std::min(width, height);
  const std::array<std::uint32_t, 4> words = draw(key, Augmentation::kWindow);
  const auto first = [&](std::int64_t pixels, std::uint32_t word) {
    const std::int64_t room = scaled_pixels(pixels, shorter, resize) - size;
    return place == WindowPlace::kMiddle ? static_cast<std::int64_t>(std::nearbyint(static_cast<double>(room) / 2))
                                         : below(word, room + 1);
  };
  return view_at(width, height, resize, size, first(width, words[0]), first(height, words[1]));
}

ImageView view_at(std::int64_t width, std::int64_t height, std::int64_t resize, std::int64_t size, std::int64_t left,
                  std::int64_t top) {
  const std::int64_t shorter = std::min(width, height);
  const CropSpan across(width, scaled_pixels(width, shorter, resize), size, static_cast<double>(left));
  const CropSpan down(height, scaled_pixels(height, shorter, resize), size, static_cast<double>(top));
  return {across.begin,
          down.begin,
          across.length,
          down.length,
          {across.first, down.first, across.last - across.first, down.last - down.first},
          size};
}

std::int64_t scaled_pixels(std::int64_t pixels, std::int64_t shorter, std::int64_t resize) {
  return pixels * resize / shorter;
}

ImageView random_view(std::int64_t width, std::int64_t height, const RandomResizedCropOptions& options,
                      std::int64_t size, const SampleKey& key) {
  const double area = static_cast<double>(width) * static_cast<double>(height);
  for (std::uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
    const std::array<std::uint32_t, 4> words = draw(key, Augmentation::kResizedCrop, attempt);
    const double target = area * uniform(words[0], options.min_area, options.max_area);
    const double aspect = std::exp(uniform(words[1], std::log(options.min_aspect), std::log(options.max_aspect)));
    PixelBox box;
    box.width = static_cast<std::int64_t>(std::nearbyint(std::sqrt(target * aspect)));
    box.height = static_cast<std::int64_t>(std::nearbyint(std::sqrt(target / aspect)));
    if (box.width < 1 || box.width > width || box.height < 1 || box.height > height) continue;
    box.left = below(words[2], width - box.width + 1);
    box.top = below(words[3], height - box.height + 1);
    return view_of(box, size);
  }
  // An image too long for the aspects that are asked for: as much of its center as has one of them.
  const double aspect =
      std::clamp(static_cast<double>(width) / static_cast<double>(height), options.min_aspect, options.max_aspect);
  PixelBox box{0, 0, width, height};
  const auto rounded = [](double length, std::int64_t most) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::nearbyint(length)), 1, most);
  };
  box.height = rounded(static_cast<double>(width) / aspect, height);
  box.width = rounded(static_cast<double>(box.height) * aspect, width);
  box.left = (width - box.width) / 2;
  box.top = (height - box.height) / 2;
  return view_of(box, size);
}

}  // namespace lockstep::data
