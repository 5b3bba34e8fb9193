// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace lockstep::train {

/// What Chrome's trace viewer and Perfetto read: a process a rank, a row a thread; times in microseconds.
struct TracePlace {
  int rank = 0;
  int thread = 0;
};

/// What lasts from `begin` to `end`.
nlohmann::ordered_json trace_event(TracePlace place, std::string_view name, std::string_view category, double begin,
                                   double end);
/// What has begun and not ended.
nlohmann::ordered_json open_trace_event(TracePlace place, std::string_view name, std::string_view category,
                                        double begin);
/// `what`: "process_name" or "thread_name".
nlohmann::ordered_json trace_name(TracePlace place, std::string_view what, std::string_view name);

}  // namespace lockstep::train
