// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/field_checks.h"

namespace lockstep::data {

/// A random part of an image, as torchvision's RandomResizedCrop draws it.
struct RandomResizedCropOptions {
  double min_area = 0.08;  ///< share of the image's area
  double max_area = 1;
  double min_aspect = 0.75;  ///< width / height
  double max_aspect = 1.3333333333333333;

  bool operator==(const RandomResizedCropOptions&) const = default;
};

FieldProblems problems_of(const RandomResizedCropOptions& options);

/// JPEG and PNG images, a folder a class.
struct ImageFolderOptions {
  std::string folder = {};                          ///< holds the classes' folders, whose names are sorted
  std::int64_t size = 224;                          ///< samples are [size, size, 3]
  std::int64_t resize = 0;                          ///< shorter side before the center crop; 0: size * 256 / 224
  std::int64_t max_pixels = std::int64_t{1} << 26;  ///< of an image; a larger one is refused before it is decoded
  /// Draws this instead of the center crop; make_dataset() gives it to training data.
  std::optional<RandomResizedCropOptions> random_resized_crop = {};
  /// The classes' folders in order; none: all that there are. make_dataset() gives evaluation data the training set's.
  std::vector<std::string> class_names = {};

  bool operator==(const ImageFolderOptions&) const = default;
};

/// The rules of an image's extents, as kinds of data sets share them. `resize`: 0 where it follows from the size.
void check_image_size(std::int64_t size, std::int64_t resize, std::int64_t max_pixels, FieldChecks& checks);

/// By field; what is in the folder is looked at when it is opened.
FieldProblems problems_of(const ImageFolderOptions& options);

}  // namespace lockstep::data
