// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::job {

/// The candidate that a typist most likely meant, by edit distance without regard to case; empty when none is close.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// `did you mean "steps"?`, or `known: a, b, c` when nothing is close.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

/// "a, b, c"
std::string comma_list(const std::vector<std::string>& words);

}  // namespace lockstep::job
