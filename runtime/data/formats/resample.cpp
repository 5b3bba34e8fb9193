// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace lockstep::data {

namespace {

constexpr std::int64_t kColors = 3;

/// A pixel's channels and a lane that is not used: a register.
using Lanes = float __attribute__((vector_size(16)));

/// Which pixels of a line make an output pixel, and by what weights.
struct Taps {
  std::int64_t first = 0;
  std::vector<float> weights;
};

Lanes load(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

/// The line's part [begin, begin + length) becomes `size` pixels, of the pixels low .. high - 1.
std::vector<Taps> taps_of(double begin, double length, std::int64_t size, std::int64_t low, std::int64_t high) {
  const double scale = length / static_cast<double>(size);
  const double width = std::max(scale, 1.0);
  std::vector<Taps> all(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) {
    Taps& taps = all[static_cast<std::size_t>(i)];
    const double center = begin + (static_cast<double>(i) + 0.5) * scale;
    const auto from = static_cast<std::int64_t>(std::floor(center - width + 0.5));
    const auto to = static_cast<std::int64_t>(std::floor(center + width + 0.5));
    taps.first = std::clamp(from, low, high - 1);
    const std::int64_t last = std::clamp(to, taps.first + 1, high);
    double sum = 0;
    std::vector<double> weights;
    for (std::int64_t x = taps.first; x < last; ++x) {
      weights.push_back(std::max(0.0, 1 - std::abs((static_cast<double>(x) + 0.5 - center) / width)));
      sum += weights.back();
    }
    for (const double weight : weights) taps.weights.push_back(static_cast<float>(sum > 0 ? weight / sum : 1.0));
  }
  return all;
}

}  // namespace

void resample(const DecodedImage& image, std::span<float> out) {
  const ImageView& view = image.view;
  const PixelBox& seen = view.seen;
  const std::vector<Taps> columns = taps_of(view.left, view.width, view.size, seen.left, seen.left + seen.width);
  const std::vector<Taps> rows = taps_of(view.top, view.height, view.size, seen.top, seen.top + seen.height);
  const std::int64_t begin = columns.front().first;
  const std::int64_t end = columns.back().first + std::ssize(columns.back().weights);
  // Rows are added first: that is one loop over neighbours in memory.
  const auto width = static_cast<std::size_t>((end - begin) * kColors);
  std::vector<float> line(width + 1);  // a register's last lane reads, and writes, one behind a pixel
  std::vector<float> pixels(static_cast<std::size_t>(view.size * kColors + 1));
  float* to = out.data();
  for (const Taps& row : rows) {
    std::ranges::fill(line, 0.0f);
    for (std::size_t k = 0; k < row.weights.size(); ++k) {
      const std::int64_t y = row.first + static_cast<std::int64_t>(k);
      const std::uint8_t* const source = image.pixels.data() + (y * image.width + begin) * kColors;
      const float weight = row.weights[k] * (1.0f / 255.0f);
      for (std::size_t i = 0; i < width; ++i) line[i] += weight * static_cast<float>(source[i]);
    }
    float* pixel = pixels.data();
    for (const Taps& column : columns) {
      const float* source = line.data() + (column.first - begin) * kColors;
      Lanes sum{};
      for (const float weight : column.weights) {
        sum += weight * load(source);
        source += kColors;
      }
      std::memcpy(pixel, &sum, sizeof sum);
      pixel += kColors;
    }
    to = std::copy_n(pixels.data(), view.size * kColors, to);
  }
}

}  // namespace lockstep::data
