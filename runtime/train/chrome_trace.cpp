// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/chrome_trace.h"

#include <nlohmann/json.hpp>

namespace lockstep::train {

using Json = nlohmann::ordered_json;

Json open_trace_event(TracePlace place, std::string_view name, std::string_view category, double begin) {
  return {{"ph", "B"}, {"name", name}, {"cat", category}, {"pid", place.rank}, {"tid", place.thread}, {"ts", begin}};
}

Json trace_event(TracePlace place, std::string_view name, std::string_view category, double begin, double end) {
  Json event = open_trace_event(place, name, category, begin);
  event["ph"] = "X";
  event["dur"] = end - begin;
  return event;
}

Json trace_name(TracePlace place, std::string_view what, std::string_view name) {
  return {{"ph", "M"}, {"name", what}, {"pid", place.rank}, {"tid", place.thread}, {"args", {{"name", name}}}};
}

}  // namespace lockstep::train
