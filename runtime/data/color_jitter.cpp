// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/color_jitter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/option_checks.h"
#include "runtime/data/draw.h"

namespace lockstep::data {

namespace {

constexpr const char* kColorJitterPath = "data.augment.color_jitter";

enum Change { kBrightness, kContrast, kSaturation, kHue, kChanges };

/// ITU-R 601-2, as PIL and torchvision weigh.
float grey(const float* pixel) { return 0.2989f * pixel[0] + 0.587f * pixel[1] + 0.114f * pixel[2]; }

float kept(float value) { return std::clamp(value, 0.0f, 1.0f); }

void brighten(std::span<float> image, float factor) {
  for (float& value : image) value = kept(value * factor);
}

void change_contrast(std::span<float> image, float factor) {
  double sum = 0;
  for (std::size_t i = 0; i < image.size(); i += 3) sum += grey(&image[i]);
  const float mean = static_cast<float>(sum / static_cast<double>(image.size() / 3)) * (1 - factor);
  for (float& value : image) value = kept(value * factor + mean);
}

void saturate(std::span<float> image, float factor) {
  for (std::size_t i = 0; i < image.size(); i += 3) {
    const float rest = grey(&image[i]) * (1 - factor);
    for (std::size_t c = 0; c < 3; ++c) image[i + c] = kept(image[i + c] * factor + rest);
  }
}

/// Through hue, saturation and value (Smith: "Color gamut transform pairs", 1978).
void turn_hue(std::span<float> image, float turn) {
  for (std::size_t i = 0; i < image.size(); i += 3) {
    float* const pixel = &image[i];
    const float value = std::max({pixel[0], pixel[1], pixel[2]});
    const float range = value - std::min({pixel[0], pixel[1], pixel[2]});
    if (range == 0) continue;
    float sixths = pixel[0] == value   ? (pixel[1] - pixel[2]) / range
                   : pixel[1] == value ? 2 + (pixel[2] - pixel[0]) / range
                                       : 4 + (pixel[0] - pixel[1]) / range;
    sixths += 6 * turn;
    sixths -= 6 * std::floor(sixths / 6);
    for (std::size_t c = 0; c < 3; ++c) {
      // A channel is full within a sixth of its own hue and empty beyond two of them.
      const float from_own = std::abs(sixths - 2 * static_cast<float>(c));
      const float distance = std::min(from_own, 6 - from_own);
      pixel[c] = value - range * kept(distance - 1);
    }
  }
}

}  // namespace

void require_color_jitter(const ColorJitterOptions& options, const Shape& sample) {
  require_none(problems_in_fields(options), kColorJitterPath);
  if (sample.rank() == 3 && sample.back() == 3) return;
  throw FieldError(kColorJitterPath, "needs images [H, W, 3], but samples have shape " + sample.str());
}

ColorJitter::ColorJitter(DatasetPtr base, const ColorJitterOptions& options)
    : Transform(std::move(base)), options_(options) {
  require_color_jitter(options, sample_shape());
}

void ColorJitter::apply(const SampleKey& key, const Sample& sample) const {
  const std::array<std::uint32_t, 4> strengths = draw(key, Augmentation::kColorJitter);
  const std::array<std::uint32_t, 4> places = draw(key, Augmentation::kColorJitter, 1);
  std::array<Change, kChanges> order{kBrightness, kContrast, kSaturation, kHue};
  for (std::size_t i = order.size() - 1; i > 0; --i) {
    std::swap(order[i], order[static_cast<std::size_t>(below(places[i], static_cast<std::int64_t>(i) + 1))]);
  }
  const auto factor = [&strengths](Change change, double width) {
    return static_cast<float>(uniform(strengths[change], std::max(0.0, 1 - width), 1 + width));
  };
  const std::span<float> image = sample.values;
  for (const Change change : order) {
    if (change == kBrightness && options_.brightness > 0) brighten(image, factor(change, options_.brightness));
    if (change == kContrast && options_.contrast > 0) change_contrast(image, factor(change, options_.contrast));
    if (change == kSaturation && options_.saturation > 0) saturate(image, factor(change, options_.saturation));
    if (change == kHue && options_.hue > 0) {
      turn_hue(image, static_cast<float>(uniform(strengths[change], -options_.hue, options_.hue)));
    }
  }
}

}  // namespace lockstep::data
