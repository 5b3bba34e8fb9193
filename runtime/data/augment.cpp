// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/augment.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/option_checks.h"
#include "runtime/data/draw.h"

namespace lockstep::data {

namespace {

void require_image(const Shape& shape, const char* path) {
  if (shape.rank() == 3) return;
  throw FieldError(path, "needs images [H, W, C], but samples have shape " + shape.str());
}

void require_pad(std::int64_t pad, const Shape& sample) {
  const char* const path = "data.augment.pad_crop";
  if (pad < 0) throw FieldError(path, "must be >= 0, is " + std::to_string(pad));
  require_image(sample, path);
  if (pad <= sample[0] && pad <= sample[1]) return;
  throw FieldError(path, std::to_string(pad) + " is more than the images' extent, " + sample.str());
}

/// Targets a position would have to move with the pixels.
void require_target_a_sample(const Description& data, const char* path) {
  if (data.target_shape.rank() <= (data.classes > 0 ? 0 : 1)) return;
  throw FieldError(path, "needs one target a sample, but they have shape " + data.target_shape.str() + " for samples " +
                             data.sample_shape.str());
}

/// Whether targets are one a pixel.
bool is_per_pixel(const Shape& sample, const Shape& target) {
  return sample.rank() == 3 && target.rank() >= 2 && target.rank() <= 3 && target[0] == sample[0] &&
         target[1] == sample[1];
}

/// Mirrors rows of `width` elements of `numbers` each.
template <class T>
void mirror_rows(std::span<T> image, std::size_t width, std::size_t numbers) {
  for (std::size_t begin = 0; begin < image.size(); begin += width * numbers) {
    T* const row = image.data() + begin;
    for (std::size_t left = 0, right = width - 1; left < right; ++left, --right) {
      std::swap_ranges(row + left * numbers, row + (left + 1) * numbers, row + right * numbers);
    }
  }
}

/// Moves n floats of a row by `shift` places to the left (negative: right) and fills up with zeros. In place or into
/// another row.
void move_row(float* out, const float* in, std::int64_t n, std::int64_t shift) {
  const std::int64_t kept = n - std::abs(shift);
  const std::int64_t to = std::max<std::int64_t>(-shift, 0);
  const std::int64_t from = std::max<std::int64_t>(shift, 0);
  std::memmove(out + to, in + from, static_cast<std::size_t>(kept) * sizeof(float));
  std::fill(out, out + to, 0.0f);
  std::fill(out + to + kept, out + n, 0.0f);
}

}  // namespace

FieldProblems problems_of(const AugmentOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  check_fields(options.volume, checks);
  if (options.random_resized_crop) check_ranges(*options.random_resized_crop, "random_resized_crop.", checks);
  return checks.problems();
}

void require_augment(const AugmentOptions& options, const Description& data) {
  const Shape& sample = data.sample_shape;
  if (options.pad_crop != 0) {
    require_pad(options.pad_crop, sample);
    require_target_a_sample(data, "data.augment.pad_crop");
  }
  if (options.flip) {
    require_image(sample, "data.augment.flip");
    if (!is_per_pixel(sample, data.target_shape)) require_target_a_sample(data, "data.augment.flip");
  }
  if (options.color_jitter != ColorJitterOptions()) require_color_jitter(options.color_jitter, sample);
}

PadCrop::PadCrop(DatasetPtr base, std::int64_t pad) : Transform(std::move(base)), pad_(pad) {
  require_pad(pad, sample_shape());
  height_ = sample_shape()[0];
  width_ = sample_shape()[1];
  channels_ = sample_shape()[2];
}

void PadCrop::apply(const SampleKey& key, const Sample& sample) const {
  const std::array<std::uint32_t, 4> words = draw(key, Augmentation::kPadCrop);
  const std::int64_t down = below(words[0], 2 * pad_ + 1) - pad_;
  const std::int64_t right = below(words[1], 2 * pad_ + 1) - pad_;
  const std::int64_t row = width_ * channels_;
  // Rows are taken in the order in which none is overwritten before it is read.
  for (std::int64_t i = 0; i < height_; ++i) {
    const std::int64_t y = down >= 0 ? i : height_ - 1 - i;
    float* out = sample.values.data() + y * row;
    const std::int64_t source = y + down;
    if (source < 0 || source >= height_) {
      std::fill(out, out + row, 0.0f);
    } else {
      move_row(out, sample.values.data() + source * row, row, right * channels_);
    }
  }
}

Flip::Flip(DatasetPtr base) : Transform(std::move(base)) {
  require_image(sample_shape(), "data.augment.flip");
  width_ = static_cast<std::size_t>(sample_shape()[1]);
  channels_ = static_cast<std::size_t>(sample_shape()[2]);
  if (!is_per_pixel(sample_shape(), target_shape())) return;
  numbers_ = target_shape().rank() == 3 ? static_cast<std::size_t>(target_shape()[2]) : 1;
}

void Flip::apply(const SampleKey& key, const Sample& sample) const {
  if ((draw(key, Augmentation::kFlip)[0] & 1) == 0) return;
  mirror_rows(sample.values, width_, channels_);
  if (numbers_ == 0) return;
  mirror_rows(sample.target, width_, numbers_);
  mirror_rows(sample.labels, width_, 1);
}

}  // namespace lockstep::data
