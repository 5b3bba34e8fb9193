// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/field_checks.h"
#include "runtime/data/image_folder_options.h"

namespace lockstep::data {

/// Images and labels in tar files.
struct ShardsOptions {
  std::vector<std::string> files = {};              ///< patterns of expand_braces(); at least one
  std::int64_t size = 224;                          ///< samples are [size, size, 3]
  std::int64_t resize = 0;                          ///< shorter side before the center crop; 0: size * 256 / 224
  std::int64_t max_pixels = std::int64_t{1} << 26;  ///< of an image; a larger one is refused before it is decoded
  std::int64_t classes = 0;                         ///< 0: the highest label + 1
  /// Draws this instead of the center crop; make_dataset() gives it to training data.
  std::optional<RandomResizedCropOptions> random_resized_crop = {};

  bool operator==(const ShardsOptions&) const = default;
};

/// By field; what the files hold is looked at when they are opened.
FieldProblems problems_of(const ShardsOptions& options);

}  // namespace lockstep::data
