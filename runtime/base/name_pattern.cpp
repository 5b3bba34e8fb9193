// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/name_pattern.h"

#include <re2/re2.h>

#include <stdexcept>

namespace lockstep {

namespace {

RE2::Options options() {
  RE2::Options options;
  options.set_log_errors(false);
  return options;
}

}  // namespace

std::string NamePattern::problem_of(const std::string& expression) {
  const RE2 compiled(expression, options());
  return compiled.ok() ? "" : compiled.error();
}

NamePattern::NamePattern(const std::string& expression)
    : expression_(std::make_shared<const RE2>(expression, options())) {
  if (!expression_->ok()) throw std::invalid_argument(expression_->error());
}

bool NamePattern::is_in(const std::string& name) const { return RE2::PartialMatch(name, *expression_); }

}  // namespace lockstep
