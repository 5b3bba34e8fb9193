// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lockstep::train {

/// A line of metrics.jsonl with an event in words: "eval at step 20: loss 0.5, accuracy 0.97". One of another version
/// goes by its name.
std::string event_text(const nlohmann::ordered_json& line);

}  // namespace lockstep::train
