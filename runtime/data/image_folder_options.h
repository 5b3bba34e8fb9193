// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"

namespace lockstep::data {

/// A random part of an image, as torchvision's RandomResizedCrop draws it.
struct RandomResizedCropOptions {
  double min_area = 0.08;  ///< share of the image's area
  double max_area = 1;
  double min_aspect = 0.75;  ///< width / height
  double max_aspect = 1.3333333333333333;

  static constexpr auto fields() {
    return std::tuple(option("min_area", &RandomResizedCropOptions::min_area, kPositive),
                      option("max_area", &RandomResizedCropOptions::max_area),
                      option("min_aspect", &RandomResizedCropOptions::min_aspect, kPositive),
                      option("max_aspect", &RandomResizedCropOptions::max_aspect, kPositive));
  }
  bool operator==(const RandomResizedCropOptions&) const = default;
};

/// Checks that no range is empty. `at` stands before the names of the fields.
void check_ranges(const RandomResizedCropOptions& options, const std::string& at, FieldChecks& checks);

/// JPEG, PNG and WebP images, a folder a class.
struct ImageFolderOptions {
  std::string folder = {};                          ///< holds the classes' folders, whose names are sorted
  std::int64_t size = 224;                          ///< samples are [size, size, 3]
  std::int64_t resize = 0;                          ///< shorter side before the center crop; 0: size * 256 / 224
  std::int64_t max_pixels = std::int64_t{1} << 26;  ///< of an image; a larger one is refused before it is decoded
  bool exif_orientation = false;  ///< turns images upright as their EXIF block says, before they are cropped
  /// Draws this instead of the center crop; make_dataset() gives it to training data.
  std::optional<RandomResizedCropOptions> random_resized_crop = {};
  /// The classes' folders in order; none: all that there are. make_dataset() gives evaluation data the training set's.
  std::vector<std::string> class_names = {};

  static constexpr std::string_view kKind = "image_folder";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("folder", &ImageFolderOptions::folder, Names::kFolder, Required{}),
                      option("size", &ImageFolderOptions::size),
                      option("resize", &ImageFolderOptions::resize, kAtLeastOne, Otherwise::kFollows),
                      option("max_pixels", &ImageFolderOptions::max_pixels, kAtLeastOne),
                      option("exif_orientation", &ImageFolderOptions::exif_orientation));
  }
  bool operator==(const ImageFolderOptions&) const = default;
};

/// The rules of an image's extents, as kinds of data sets share them. `resize`: 0 where it follows from the size.
void check_image_size(std::int64_t size, std::int64_t resize, FieldChecks& checks);
/// The `resize` of options that say none: size * 256 / 224. 0 for a size that is refused.
std::int64_t resize_for(std::int64_t size);

/// Gives what follows from other options its value: of ImageFolderOptions and ShardsOptions.
template <class Options>
requires requires(Options& options) { options.resize; }
void complete(Options& options) {
  if (options.resize == 0) options.resize = resize_for(options.size);
}

/// By field; what is in the folder is looked at when it is opened.
FieldProblems problems_of(const ImageFolderOptions& options);

}  // namespace lockstep::data
