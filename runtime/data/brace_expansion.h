// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lockstep::data {

/// The texts that a pattern stands for: each "{000000..000146}" counts, with as many digits as its longer end, and each
/// "{train,val}" lists. The last brace counts fastest. A text without braces is itself. Throws UsageError for a brace
/// that is neither, and for more than a million texts.
std::vector<std::string> expand_braces(const std::string& pattern);

}  // namespace lockstep::data
