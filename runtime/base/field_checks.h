// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A field of an options struct and why its value cannot be used.
struct FieldProblem {
  std::string field;    ///< "lr", "group[1].match"
  std::string message;  ///< "must be > 0, is -1"
  /// Other fields of the struct whose values the message compares with.
  std::vector<std::string> compared_with = {};
};
using FieldProblems = std::vector<FieldProblem>;

/// Collects the problems of an options struct. Each check returns whether the value can be used. NaN never can, and an
/// infinite value only where a rule of the caller says so.
class FieldChecks {
 public:
  /// "FIELD: must be RULE, is VALUE" unless `holds`.
  bool check(bool holds, const std::string& field, std::string_view rule, double value,
             std::vector<std::string> compared_with = {});
  bool positive(double value, const std::string& field);
  bool not_negative(double value, const std::string& field);
  bool at_least_one(double value, const std::string& field);
  /// 0 <= value < 1.
  bool fraction(double value, const std::string& field);
  void error(std::string field, std::string message, std::vector<std::string> compared_with = {});

  const FieldProblems& problems() const { return problems_; }

 private:
  FieldProblems problems_;
};

/// Throws FieldError for the first problem. `path` is where a job has the options: "optimizer.sgd" gives
/// "optimizer.sgd.lr: must be > 0, is -1".
void require_none(const FieldProblems& problems, const std::string& path);

/// The shortest text that reads back as the same number.
std::string shortest_text(double value);

}  // namespace lockstep
