// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/field_checks.h"
#include "runtime/data/arrays_options.h"
#include "runtime/data/window.h"

namespace lockstep::data {

/// Volumes and their masks, a file each.
struct VolumesOptions {
  std::string images = {};                          ///< a folder of *.nii, *.nii.gz and *.npy files
  std::string masks = {};                           ///< a folder of files of the same names
  TargetKind target_kind = TargetKind::kNumbers;    ///< numbers in [0, 1], or classes
  std::int64_t classes = 0;                         ///< 0: the highest of the masks + 1
  std::int64_t max_voxels = std::int64_t{1} << 28;  ///< numbers of a volume; a larger one is refused, unread
  /// Extents [D, H, W] of a window of each volume, which may differ in extents then; make_dataset() gives it.
  std::optional<Shape> patch = {};
  WindowPlace place = WindowPlace::kRandom;

  bool operator==(const VolumesOptions&) const = default;
};

/// By field; what is in the folders is looked at when they are opened.
FieldProblems problems_of(const VolumesOptions& options);

}  // namespace lockstep::data
