// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/image_folder_options.h"

namespace lockstep::data {

namespace {

constexpr std::int64_t kLargestSize = 4096;

}  // namespace

FieldProblems problems_of(const RandomResizedCropOptions& options) {
  FieldChecks checks;
  checks.positive(options.min_area, "min_area");
  checks.check(options.max_area >= options.min_area && options.max_area <= 1, "max_area", ">= min_area and <= 1",
               options.max_area, {"min_area"});
  checks.positive(options.min_aspect, "min_aspect");
  checks.positive(options.max_aspect, "max_aspect") &&
      checks.check(options.max_aspect >= options.min_aspect, "max_aspect", ">= min_aspect", options.max_aspect,
                   {"min_aspect"});
  return checks.problems();
}

void check_image_size(std::int64_t size, std::int64_t resize, std::int64_t max_pixels, FieldChecks& checks) {
  checks.check(size >= 1 && size <= kLargestSize, "size", ">= 1 and <= 4096", static_cast<double>(size));
  const bool fits = resize == 0 || (resize >= size && resize <= 2 * kLargestSize);
  checks.check(fits, "resize", ">= size and <= 8192", static_cast<double>(resize), {"size"});
  checks.at_least_one(static_cast<double>(max_pixels), "max_pixels");
}

FieldProblems problems_of(const ImageFolderOptions& options) {
  FieldChecks checks;
  if (options.folder.empty()) checks.error("folder", "is required: the path of a folder");
  check_image_size(options.size, options.resize, options.max_pixels, checks);
  return checks.problems();
}

}  // namespace lockstep::data
