// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/earlier_metrics.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/base/json_text.h"

namespace lockstep::train {

namespace {

using SortedJson = nlohmann::json;

/// Those that runs write have a few KB.
constexpr std::size_t kLongestLine = std::size_t{1} << 20;

/// Whether the line belongs to steps that are trained again, rather than to the run's history.
bool is_of_steps(const SortedJson& line) {
  if (!line.contains("event")) return true;
  const SortedJson& event = line["event"];
  return event == "eval" || event == "best" || event == "stopped_early" || event == "lr_reduced" ||
         event == "straggler" || event == "straggler_ended";
}

/// Whether the line stays.
bool note_line(const SortedJson& line, std::uint64_t last, EarlierMetrics& earlier) {
  if (!line.is_object() || !line.contains("step") || !line["step"].is_number_unsigned()) return false;
  if (is_of_steps(line) && line["step"].get<std::uint64_t>() > last) return false;
  if (!line.contains("event")) {
    if (line.contains("loss") && line["loss"].is_number()) earlier.loss = line["loss"];
  } else if (line["event"] == "eval") {
    earlier.evaluation = timeless(line);
  }
  return true;
}

}  // namespace

KeptLines lines_up_to(std::string_view content, std::uint64_t last) {
  KeptLines kept;
  while (!content.empty()) {
    const std::size_t end = std::min(content.find('\n'), content.size());
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    if (line.size() > kLongestLine || !note_line(parse_json(line), last, kept.earlier)) continue;
    kept.text += line;
    kept.text += '\n';
  }
  return kept;
}

std::string timeless(SortedJson line) {
  line.erase("time");
  return line.dump(-1, ' ', false, SortedJson::error_handler_t::replace);
}

}  // namespace lockstep::train
