// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/data/dataset.h"
#include "runtime/data/description.h"
#include "runtime/data/window.h"

namespace lockstep::data {

// Random changes of training volumes [D, H, W, C]. Targets a voxel, [D, H, W] or [D, H, W, K], move with their voxels.
// The draws depend on the sample's key alone.

struct VolumeAugmentOptions {
  std::optional<Shape> patch = {};  ///< extents [D, H, W] of a window; none: whole volumes
  bool mirror = false;
  double intensity_scale = 0;  ///< in [0, 1)
  double intensity_shift = 0;  ///< >= 0

  static constexpr auto fields() {
    return std::tuple(option("patch", &VolumeAugmentOptions::patch, Ranks{3, 3}),
                      option("mirror", &VolumeAugmentOptions::mirror),
                      option("intensity_scale", &VolumeAugmentOptions::intensity_scale, kFraction),
                      option("intensity_shift", &VolumeAugmentOptions::intensity_shift, kNotNegative));
  }
  bool operator==(const VolumeAugmentOptions&) const = default;
};

/// Throws FieldError for options that do not fit such data. Patches are patched()'s to check.
void require_volume_augment(const VolumeAugmentOptions& options, const Description& data);

/// Describes windows of these data. Throws FieldError where there is none of these extents, where targets are
/// neither one a sample nor one a voxel, and where only some of a sample's targets count: a window has another number
/// of them.
Description patched(Description data, const Shape& patch);

/// A window of each volume.
class Patch : public DerivedDataset {
 public:
  using Place = WindowPlace;

  /// Throws as patched() does.
  Patch(DatasetPtr base, const Shape& patch, Place place);

  Shape sample_shape() const override { return description_.sample_shape; }
  Shape target_shape() const override { return description_.target_shape; }
  std::int64_t targets_per_sample() const override { return description_.targets_per_sample; }
  void get(const SampleKey& key, const Sample& sample) const override;

 private:
  Place place_;
  Description description_;
};

/// Mirrors along each of the three axes, half of the time.
class Mirror : public Transform {
 public:
  explicit Mirror(DatasetPtr base) : Transform(std::move(base)) {}

 private:
  void apply(const SampleKey& key, const Sample& sample) const override;
};

/// x (1 + a) + b, of each sample its own a within [-scale, scale] and b within [-shift, shift]. Targets stay.
class Intensity : public Transform {
 public:
  Intensity(DatasetPtr base, double scale, double shift) : Transform(std::move(base)), scale_(scale), shift_(shift) {}

 private:
  void apply(const SampleKey& key, const Sample& sample) const override;

  double scale_;
  double shift_;
};

}  // namespace lockstep::data
