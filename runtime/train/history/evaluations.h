// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lockstep::train {

/// The number that an evaluation's line has for "eval.accuracy"; NaN where it has none.
double value_in(const nlohmann::ordered_json& evaluation, const std::string& metric);

/// The values of "eval.accuracy" that a run has recorded, by step; NaN where an evaluation has none. Of two evaluations
/// behind a step the later one counts. Reads metrics.jsonl as a whole; empty where there is none.
std::map<std::uint64_t, double> evaluations_of(const std::filesystem::path& run, const std::string& metric);

}  // namespace lockstep::train
