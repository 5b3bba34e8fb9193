// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/image_folder_options.h"

#include "runtime/base/option_checks.h"

namespace lockstep::data {

namespace {

constexpr std::int64_t kLargestSize = 4096;

}  // namespace

void check_ranges(const RandomResizedCropOptions& options, const std::string& at, FieldChecks& checks) {
  checks.check(options.max_area >= options.min_area && options.max_area <= 1, at + "max_area", ">= min_area and <= 1",
               options.max_area, {at + "min_area"});
  if (options.max_aspect <= 0) return;
  checks.check(options.max_aspect >= options.min_aspect, at + "max_aspect", ">= min_aspect", options.max_aspect,
               {at + "min_aspect"});
}

void check_image_size(std::int64_t size, std::int64_t resize, FieldChecks& checks) {
  checks.check(size >= 1 && size <= kLargestSize, "size", ">= 1 and <= 4096", static_cast<double>(size));
  const bool fits = resize == 0 || (resize >= size && resize <= 2 * kLargestSize);
  checks.check(fits, "resize", ">= size and <= 8192", static_cast<double>(resize), {"size"});
}

std::int64_t resize_for(std::int64_t size) { return size < 1 || size > kLargestSize ? 0 : size * 256 / 224; }

FieldProblems problems_of(const ImageFolderOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  check_image_size(options.size, options.resize, checks);
  return checks.problems();
}

}  // namespace lockstep::data
