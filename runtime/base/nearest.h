// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// The candidate that a typist most likely meant, by edit distance without regard to case; empty when none is close.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "a, b, c". A list that takes more than a line ends after about one and begins with the names nearest to `word`:
/// "b, a, c and 40 more", or "b, a, c and 40 more: WHERE". `where` says what lists them all, as "docs/job.md lists
/// them".
std::string name_list(std::string_view word, std::span<const std::string> names, std::string_view where = {});

/// `did you mean "steps"?`, or "known: " and name_list() when nothing is close.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates, std::string_view where = {});

}  // namespace lockstep
