// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/data/color_jitter.h"
#include "runtime/data/dataset.h"
#include "runtime/data/description.h"
#include "runtime/data/image_folder_options.h"
#include "runtime/data/volume_augment.h"

namespace lockstep::data {

// Random changes of training images [H, W, C]. What is drawn depends on the sample's key alone.

struct AugmentOptions {
  std::int64_t pad_crop = 0;  ///< pixels of PadCrop; 0: none
  bool flip = false;
  std::optional<RandomResizedCropOptions> random_resized_crop = {};  ///< of image folders and shards: no center crop
  ColorJitterOptions color_jitter = {};                              ///< none where all are 0
  VolumeAugmentOptions volume = {};
  double mixup = 0;  ///< alpha of Mixup; 0: none

  static constexpr auto fields() {
    return std::tuple(
        option("pad_crop", &AugmentOptions::pad_crop, kNotNegative), option("flip", &AugmentOptions::flip),
        option("random_resized_crop", &AugmentOptions::random_resized_crop),
        option("color_jitter", &AugmentOptions::color_jitter), option("mixup", &AugmentOptions::mixup, kNotNegative));
  }
  bool operator==(const AugmentOptions&) const = default;
};

/// By field, those of `volume` among them.
FieldProblems problems_of(const AugmentOptions& options);

/// Throws FieldError for options that do not fit such data: images that move need targets that stay where they are, one
/// label or vector a sample; flipped ones may have one a pixel. Those of volumes are require_volume_augment()'s.
void require_augment(const AugmentOptions& options, const Description& data);

/// Pads each side with `pad` pixels of zeros and crops a random window of the original size.
class PadCrop : public Transform {
 public:
  /// Throws FieldError when the samples are not images, or the padding is negative or larger than they are.
  PadCrop(DatasetPtr base, std::int64_t pad);

 private:
  void apply(const SampleKey& key, const Sample& sample) const override;

  std::int64_t pad_;
  std::int64_t height_;
  std::int64_t width_;
  std::int64_t channels_;
};

/// Mirrors left to right, half of the time, and with the image its targets where they are one a pixel.
class Flip : public Transform {
 public:
  /// Throws FieldError when the samples are not images.
  explicit Flip(DatasetPtr base);

 private:
  void apply(const SampleKey& key, const Sample& sample) const override;

  std::size_t width_;
  std::size_t channels_;
  std::size_t numbers_ = 0;  ///< of a pixel's target; 0: targets stay
};

}  // namespace lockstep::data
