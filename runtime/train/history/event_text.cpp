// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/history/event_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "runtime/base/json_text.h"

namespace lockstep::train {

using Json = nlohmann::ordered_json;

namespace {

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? fmt::format("{:.4g}", value.get<double>()) : value.dump();
}

/// "loss 0.5, accuracy 0.97": the numbers of an evaluation but for its step, time and count.
std::string numbers_of(const Json& line) {
  std::string text;
  for (const auto& [name, value] : line.items()) {
    if (!value.is_number() || name == "step" || name == "time" || name == "samples") continue;
    text += (text.empty() ? "" : ", ") + name + " " + text_of(value);
  }
  return text;
}

std::string with_detail(const std::string& text, const Json& line) {
  const Json& detail = field_of(line, "detail");
  return detail.is_string() ? text + ": " + text_of(detail) : text;
}

}  // namespace

std::string event_text(const Json& line) {
  const std::string event = text_of(field_of(line, "event"));
  const std::string step = text_of(field_of(line, "step"));
  if (event == "eval") return "eval at step " + step + ": " + numbers_of(line);
  if (event == "best") {
    return "best at step " + step + ": " + text_of(field_of(line, "metric")) + " " + text_of(field_of(line, "value"));
  }
  if (event == "lr_reduced") {
    return with_detail("learning rate " + text_of(field_of(line, "lr")) + " after step " + step, line);
  }
  if (event == "stopped_early") return with_detail("stopped early after step " + step, line);
  if (event == "straggler" || event == "straggler_ended") {
    return fmt::format("step {}: rank {} on {} {}", step, text_of(field_of(line, "rank")),
                       text_of(field_of(line, "host")),
                       event == "straggler" ? "slows the others down, by " + text_of(field_of(line, "factor"))
                                            : "slows the others down no longer");
  }
  if (event == "resumed") return with_detail("resumed behind step " + step, line);
  if (event == "restarted") {
    return "ranks started again behind step " + step + ", " + text_of(field_of(line, "restarts")) + " times so far";
  }
  if (event == "done") return "done after step " + step;
  if (event == "preempted") return "stopped after step " + step + ", as asked";
  if (event == "failed") return with_detail("failed in step " + step, line);
  return with_detail(event + " at step " + step, line);
}

}  // namespace lockstep::train
