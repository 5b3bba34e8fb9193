// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/volumes_options.h"

namespace lockstep::data {

FieldProblems problems_of(const VolumesOptions& options) {
  FieldChecks checks;
  if (options.images.empty()) checks.error("images", "is required: the path of a folder");
  if (options.masks.empty()) checks.error("masks", "is required: the path of a folder");
  if (options.classes > 0 && options.target_kind == TargetKind::kNumbers) {
    checks.error("classes", "is for target_kind: CLASSES", {"target_kind"});
  }
  checks.check(options.classes >= 0, "classes", ">= 0", static_cast<double>(options.classes));
  checks.at_least_one(static_cast<double>(options.max_voxels), "max_voxels");
  if (options.patch && (options.patch->rank() != 3 || options.patch->numel() < 1)) {
    checks.error("patch", "must be three extents of at least 1, is " + options.patch->str());
  }
  return checks.problems();
}

}  // namespace lockstep::data
