// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

namespace re2 {
class RE2;
}

namespace lockstep {

/// A regular expression of RE2's syntax that is searched in names. A search takes time linear in the name's length,
/// whatever the expression is; so back references and look-around are no part of the syntax.
class NamePattern {
 public:
  /// The error in an expression, too much memory included; empty where there is none.
  static std::string problem_of(const std::string& expression);

  /// Throws std::invalid_argument for an expression with a problem.
  explicit NamePattern(const std::string& expression);

  bool is_in(const std::string& name) const;

 private:
  std::shared_ptr<const re2::RE2> expression_;
};

}  // namespace lockstep
