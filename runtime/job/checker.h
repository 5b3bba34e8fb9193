// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "runtime/base/field_checks.h"
#include "runtime/job/diagnostic.h"

namespace lockstep::job {

/// Collects what is wrong with a job's values, each at the place that gave the value.
class Checker {
 public:
  Checker(const Locations& locations, Diagnostics& diagnostics) : locations_(locations), diagnostics_(diagnostics) {
    for (const Diagnostic& diagnostic : diagnostics_) reading_errors_.push_back(diagnostic.path);
  }

  void error(const std::string& path, const std::string& message);
  /// Whether these fields have the values that the user meant: reading reported no error for them. Where it did, the
  /// value is a default, and a check against it would report a second, false error.
  bool trusts(std::initializer_list<std::string> paths) const;
  /// Names the problems of an options struct, whose fields have the names of those of the message at `path`. Left out
  /// are fields that have an error by now, those that require() found missing, and what a misread value stands in.
  void adopt(const FieldProblems& problems, const std::string& path);
  /// `path: is required: WHAT`, unless reading found an error there or beside it, such as a misspelt name.
  bool require(bool present, const std::string& path, std::string_view what);
  /// As require(), for a field that needs a value; the value may be the one that an absent field has.
  bool require_value(const std::string& path, std::string_view what);
  /// A number that has to be given and to be > 0.
  bool required_positive(double value, const std::string& path, std::string_view what);
  /// `path: must be > 0, is -1`.
  bool check(bool holds, const std::string& path, std::string_view rule, double value);
  bool positive(double value, const std::string& path);
  bool not_negative(double value, const std::string& path);
  /// At least 1.
  bool at_least_one(double value, const std::string& path);
  /// 0 <= value < 1.
  bool fraction(double value, const std::string& path);

 private:
  bool trusts(const std::string& path) const;

  const Locations& locations_;
  Diagnostics& diagnostics_;
  std::vector<std::string> reading_errors_;
  std::vector<std::string> named_;  ///< what an error was reported for, or require() was not given
};

}  // namespace lockstep::job
