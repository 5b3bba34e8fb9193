// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/train/record/eval_result.h"

namespace lockstep::train {

/// Throws UsageError unless the name ends in .json or .svg.
void require_confusion_format(const std::filesystem::path& path);

/// Writes a confusion matrix, whole, in the format of its name. `names`: those of the classes, in their order; empty
/// where they have none.
///   .json  {"classes", "names" where they have some, "matrix": rows of targets, columns of answers, "per_class":
///   [{"class", "samples", "accuracy",
///          "precision"}]}; null for a class without samples or answers
///   .svg   a picture of it, for a browser: a square for each pair of classes, darker the larger its share of the row
/// Throws StorageError, and UsageError as above.
void write_confusion(const std::filesystem::path& path, const ConfusionMatrix& confusion,
                     const std::vector<std::string>& names = {});

}  // namespace lockstep::train
