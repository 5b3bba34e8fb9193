// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/data/arrays_options.h"

namespace lockstep::data {

/// Tables as RFC 4180 writes them, a sample a line. A column is named by its name, or by its number, counted from 0.
struct CsvOptions {
  std::vector<std::string> files = {};     ///< with the same columns, plain or gzipped; at least one
  std::string target = {};                 ///< the column to learn; none: the last one
  std::vector<std::string> features = {};  ///< the columns to learn it from; none: all others
  std::string weight = {};                 ///< the column of what each sample's loss is multiplied by; none: 1 each
  bool header = true;                      ///< the first line of each file names the columns
  std::string delimiter = ",";             ///< one character between cells
  TargetKind target_kind = TargetKind::kClasses;
  std::int64_t classes = 0;  ///< that the target gives by numbers from 0 on; 0: as many as there are
  /// Of the classes, in their order; none: they are numbers, or with classes = 0 the names in the files, sorted.
  /// make_dataset() gives evaluation data classes and names of the training data.
  std::vector<std::string> class_names = {};

  bool operator==(const CsvOptions&) const = default;
};

/// By field; what is in the files is looked at when they are opened.
FieldProblems problems_of(const CsvOptions& options);

}  // namespace lockstep::data
