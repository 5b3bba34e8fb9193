// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/field_checks.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "runtime/base/error.h"

namespace lockstep {

std::string shortest_text(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}

bool FieldChecks::check(bool holds, const std::string& field, std::string_view rule, double value,
                        std::vector<std::string> compared_with) {
  if (!holds) {
    error(field, "must be " + std::string(rule) + ", is " + shortest_text(value), std::move(compared_with));
  }
  return holds;
}

bool FieldChecks::positive(double value, const std::string& field) {
  return check(value > 0 && std::isfinite(value), field, "> 0", value);
}

bool FieldChecks::not_negative(double value, const std::string& field) {
  return check(value >= 0 && std::isfinite(value), field, ">= 0", value);
}

bool FieldChecks::at_least_one(double value, const std::string& field) {
  return check(value >= 1 && std::isfinite(value), field, ">= 1", value);
}

bool FieldChecks::fraction(double value, const std::string& field) {
  return check(value >= 0 && value < 1, field, ">= 0 and < 1", value);
}

void FieldChecks::error(std::string field, std::string message, std::vector<std::string> compared_with) {
  problems_.push_back({std::move(field), std::move(message), std::move(compared_with)});
}

void require_none(const FieldProblems& problems, const std::string& path) {
  if (problems.empty()) return;
  throw FieldError(path + "." + problems.front().field, problems.front().message);
}

}  // namespace lockstep
