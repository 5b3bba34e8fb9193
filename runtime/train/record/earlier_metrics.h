// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace lockstep::train {

/// The steps before this run, from metrics.jsonl.
struct EarlierMetrics {
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< of the last step
  std::string evaluation = {};  ///< the last one's line, but for when it was written; empty where there is none
};

/// The lines of metrics.jsonl that stay when a run goes on, and what they tell.
struct KeptLines {
  std::string text;
  EarlierMetrics earlier;
};

/// Drops from the file's content the lines of steps behind `last`, and what is no line of metrics: half-written, or
/// longer than 1 MiB.
KeptLines lines_up_to(std::string_view content, std::uint64_t last);

/// A line's text but for when it was written, its fields in alphabetical order.
std::string timeless(nlohmann::json line);

}  // namespace lockstep::train
