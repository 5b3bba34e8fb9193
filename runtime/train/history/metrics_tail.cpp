// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/history/metrics_tail.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/files/durable_file.h"
#include "runtime/base/json_text.h"

namespace lockstep::train {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t kSteps = 32;
/// Lines of steps alone need no parser: a run writes this field first.
constexpr std::string_view kEvent = "{\"event\":";

std::string read_end(const InputFile& file, std::uint64_t most_bytes) {
  std::string text(std::min(file.size(), most_bytes), '\0');
  file.read(file.size() - text.size(), std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace

bool is_end(const Json& line) {
  const Json& event = field_of(line, "event");
  return event == "done" || event == "preempted" || event == "failed";
}

MetricsTail read_metrics_tail(const std::filesystem::path& path, std::uint64_t most_bytes) {
  const InputFile file(path.string());
  const std::string text = read_end(file, most_bytes);
  MetricsTail tail{.whole = text.size() == file.size()};
  std::string_view rest = text;
  // The first line of a part is the end of one.
  if (!tail.whole) rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
  std::vector<std::string_view> steps;  // the last ones, in a ring
  std::size_t count = 0;
  std::size_t count_at_end = 0;
  while (!rest.empty()) {
    const std::size_t length = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, length);
    rest.remove_prefix(std::min(length + 1, rest.size()));
    if (line.starts_with(kEvent)) {
      Json event = parse_ordered_json(line);
      if (!event.is_object()) continue;
      if (is_end(event)) {
        tail.end = event;
        count_at_end = count;
      }
      tail.events.push_back(std::move(event));
    } else {
      steps.size() < kSteps ? steps.push_back(line) : void(steps[count % kSteps] = line);
      ++count;
    }
  }
  for (std::size_t i = count - steps.size(); i < count; ++i) {
    Json step = parse_ordered_json(steps[i % kSteps]);
    if (!field_of(step, "step").is_number_unsigned()) continue;
    tail.trained_after_end = tail.trained_after_end || i >= count_at_end;
    tail.steps.push_back(std::move(step));
  }
  return tail;
}

}  // namespace lockstep::train
