// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/data/dataset.h"

namespace lockstep::data {

/// Random changes of colour as torchvision's ColorJitter defines them: a factor is drawn between 1 - x, at least 0, and
/// 1 + x.
struct ColorJitterOptions {
  double brightness = 0;  ///< of the factor that multiplies a pixel
  double contrast = 0;    ///< of the factor around the mean grey of the image
  double saturation = 0;  ///< of the factor around a pixel's grey
  double hue = 0;         ///< the turn of the hue is drawn between -hue and hue, at most 0.5

  static constexpr auto fields() {
    return std::tuple(option("brightness", &ColorJitterOptions::brightness, kNotNegative),
                      option("contrast", &ColorJitterOptions::contrast, kNotNegative),
                      option("saturation", &ColorJitterOptions::saturation, kNotNegative),
                      option("hue", &ColorJitterOptions::hue, Bound{">= 0 and <= 0.5", 0, false, 0.5}));
  }
  bool operator==(const ColorJitterOptions&) const = default;
};

/// Throws FieldError for options without a meaning and where samples of this shape are no images of 3 channels.
void require_color_jitter(const ColorJitterOptions& options, const Shape& sample);

/// Changes images [H, W, 3] of values in [0, 1], in an order that is drawn, too. A value is kept within [0, 1].
class ColorJitter : public Transform {
 public:
  /// Throws as require_color_jitter() does.
  ColorJitter(DatasetPtr base, const ColorJitterOptions& options);

 private:
  void apply(const SampleKey& key, const Sample& sample) const override;

  ColorJitterOptions options_;
};

}  // namespace lockstep::data
