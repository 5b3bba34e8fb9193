// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep::job {

void Checker::error(const std::string& path, const std::string& message) {
  const auto is_this = [&](const std::string& wrong) { return !wrong.empty() && wrong == path; };
  if (std::ranges::any_of(reading_errors_, is_this)) return;
  diagnostics_.emplace_back(locations_.find(path), path, message);
  named_.push_back(path);
}

bool Checker::trusts(std::initializer_list<std::string> paths) const {
  return std::ranges::all_of(paths, [this](const std::string& path) { return trusts(path); });
}

bool Checker::trusts(const std::string& path) const {
  const auto is_wrong = [this](const std::string& at) { return std::ranges::find(reading_errors_, at); };
  const auto none = reading_errors_.end();
  const auto inside = [&](const std::string& wrong) {
    return wrong.starts_with(path + "[") || wrong.starts_with(path + ".");
  };
  if (is_wrong(path) != none || std::ranges::any_of(reading_errors_, inside)) return false;
  // A field that nothing gave a value may be the one whose name is misspelt in the message around it.
  for (std::string field = path; !field.empty(); field = parent_path(field)) {
    if (!locations_.contains(field) && is_wrong(parent_path(field)) != none) return false;
  }
  return true;
}

void Checker::adopt(const FieldProblems& problems, const std::string& path) {
  const std::vector<std::string> named = named_;  // a field may have several problems
  for (const FieldProblem& problem : problems) {
    const std::string field = join_path(path, problem.field);
    const auto is_trusted = [&](const std::string& other) { return trusts(join_path(path, other)); };
    if (!trusts(field) || !std::ranges::all_of(problem.compared_with, is_trusted)) continue;
    if (std::ranges::find(named, field) == named.end()) error(field, problem.message);
  }
}

bool Checker::require(bool present, const std::string& path, std::string_view what) {
  if (!present) named_.push_back(path);
  const std::string parent = parent_path(path);
  const auto beside = [&](const std::string& wrong) {
    return wrong == parent || wrong == path || wrong.starts_with(path + "[") || wrong.starts_with(path + ".");
  };
  if (!present && std::ranges::none_of(reading_errors_, beside)) error(path, "is required: " + std::string(what));
  return present;
}

bool Checker::required_positive(double value, const std::string& path, std::string_view what) {
  return require_value(path, what) && positive(value, path);
}

bool Checker::require_value(const std::string& path, std::string_view what) {
  return require(locations_.contains(path), path, what);
}

bool Checker::check(bool holds, const std::string& path, std::string_view rule, double value) {
  if (!holds) error(path, fmt::format("must be {}, is {}", rule, shortest_text(value)));
  return holds;
}

bool Checker::positive(double value, const std::string& path) {
  return check(value > 0 && std::isfinite(value), path, "> 0", value);
}

bool Checker::not_negative(double value, const std::string& path) {
  return check(value >= 0 && std::isfinite(value), path, ">= 0", value);
}

bool Checker::at_least_one(double value, const std::string& path) {
  return check(value >= 1 && std::isfinite(value), path, ">= 1", value);
}

bool Checker::fraction(double value, const std::string& path) {
  return check(value >= 0 && value < 1, path, ">= 0 and < 1", value);
}

}  // namespace lockstep::job
