// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

namespace lockstep::train {

/// What the end of a metrics.jsonl tells. Lines that are no JSON objects, as a killed process leaves one, are left out.
struct MetricsTail {
  std::vector<nlohmann::ordered_json> events;  ///< in their order
  std::vector<nlohmann::ordered_json> steps;   ///< the last ones, in their order
  nlohmann::ordered_json end;                  ///< the last event of an end; null where there is none
  bool trained_after_end = false;              ///< a line of a step stands behind `end`
  bool whole = true;                           ///< else the file is longer, and its end alone was read
};

/// Whether the event tells of an end of a run: done, preempted, failed.
bool is_end(const nlohmann::ordered_json& line);

/// Reads `most_bytes` at the file's end, so that a file of any length takes milliseconds. Throws StorageError where
/// there is no such file.
MetricsTail read_metrics_tail(const std::filesystem::path& file, std::uint64_t most_bytes = std::uint64_t{8} << 20);

}  // namespace lockstep::train
