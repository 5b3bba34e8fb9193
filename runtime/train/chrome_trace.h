// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace lockstep::train {

/// Where Chrome's trace viewer and Perfetto show an event: each rank is a process there, each of its threads a row.
struct TracePlace {
  int rank;
  int thread;  ///< above 0 and of no other rank's thread: Perfetto showed rank 1's threads 0 and 1 as one row
};

/// An event of that name, from `begin` to `end`, in microseconds.
nlohmann::ordered_json trace_event(TracePlace place, std::string_view name, std::string_view category, double begin,
                                   double end);
/// An event that began at `begin` and has not ended.
nlohmann::ordered_json open_trace_event(TracePlace place, std::string_view name, std::string_view category,
                                        double begin);
/// Names a process or a row: `what` is "process_name" or "thread_name".
nlohmann::ordered_json trace_name(TracePlace place, std::string_view what, std::string_view name);

}  // namespace lockstep::train
