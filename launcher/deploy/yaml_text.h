// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lockstep::launcher {

/// The text between double quotes, as YAML and JSON read it. Throws UsageError where it is no UTF-8, which YAML cannot
/// hold.
std::string yaml_quoted(const std::string& text);

/// A sequence in brackets: an option and its value share a line.
std::string yaml_words(const std::vector<std::string>& words);

/// The text with so many blanks before each line but the first and empty ones.
std::string indented(const std::string& text, int blanks);

}  // namespace lockstep::launcher
