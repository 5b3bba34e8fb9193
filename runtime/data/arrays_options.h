// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/field_checks.h"

namespace lockstep::data {

/// What the targets of a file are.
enum class TargetKind {
  kClasses,  ///< each is one of several
  kNumbers,  ///< each is a value
};

/// Of classes that are counted: a label above is damage, not one more class.
inline constexpr std::int64_t kMostCountedClasses = std::int64_t{1} << 24;

/// Two arrays in NumPy's .npy format, a row of each a sample.
struct ArraysOptions {
  std::string features = {};  ///< file of [N, ...], channels last
  std::string targets = {};   ///< file of [N], or of [N, ...] with a target a position
  TargetKind target_kind = TargetKind::kClasses;
  std::int64_t classes = 0;     ///< 0: the highest target + 1; make_dataset() takes the training set's
  std::int64_t vocabulary = 0;  ///< features [N, T] are integers, tokens below this; 0: they are numbers
  std::string weights = {};     ///< file of [N], numbers >= 0: what each sample's loss is multiplied by; none: 1 each

  bool operator==(const ArraysOptions&) const = default;
};

/// By field; what is in the files is looked at when they are opened.
FieldProblems problems_of(const ArraysOptions& options);

}  // namespace lockstep::data
