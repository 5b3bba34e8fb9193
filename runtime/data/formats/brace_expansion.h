// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lockstep::data {

/// The texts that a pattern stands for: each "{0..146}" counts, with as many digits as its longer end where an end
/// begins with a zero, "{000..146}", and each "{train,val}" lists. The last brace counts fastest. A text without braces
/// is itself, and so is a brace of a folder's name that neither counts nor lists: "run{1}/a.tar", and one behind a
/// backslash: "\{a,b\}.tar". Throws UsageError for a brace behind the folders that neither counts nor lists, and for
/// more than a million texts or 64 MiB of them.
std::vector<std::string> expand_braces(const std::string& pattern);

/// A pattern that stands for `text` alone: itself, or with backslashes where its braces count or list.
std::string literal_pattern(const std::string& text);

}  // namespace lockstep::data
