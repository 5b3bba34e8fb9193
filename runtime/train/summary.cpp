// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/summary.h"

#include <fstream>
#include <nlohmann/json.hpp>

namespace lockstep::train {

namespace fs = std::filesystem;

nlohmann::ordered_json to_json(const Summary& summary) {
  nlohmann::ordered_json json{{"world_size", summary.world_size},       {"device", summary.device},
                              {"precision", summary.precision},         {"steps", summary.steps},
                              {"applied_steps", summary.applied_steps}, {"skipped_steps", summary.skipped_steps},
                              {"final_loss", summary.final_loss}};
  if (summary.eval) {
    json["eval"] = {{"samples", summary.eval->samples}, {"loss", summary.eval->loss}};
    if (summary.eval->accuracy) json["eval"]["accuracy"] = *summary.eval->accuracy;
  }
  json["samples_per_s"] = summary.samples_per_s;
  json["step_ms_p50"] = summary.step_ms_p50;
  json["time_to_first_step_ms"] = summary.time_to_first_step_ms;
  json["mpi_init_ms"] = summary.mpi_init_ms;
  json["weights_digest"] = nullptr;
  if (!summary.weights_digest.empty()) json["weights_digest"] = summary.weights_digest;
  if (!summary.environment.empty()) json["environment"] = nlohmann::ordered_json::parse(summary.environment);
  if (summary.gpu) {
    json["gpu"] = {{"name", summary.gpu->name},
                   {"peak_memory_bytes", summary.gpu->peak_memory},
                   {"launch_us_p50", summary.gpu->launch_us_p50},
                   {"host_waits", summary.gpu->host_waits},
                   {"graph_launches", summary.gpu->graph_launches}};
  }
  return json;
}

bool describes(const fs::path& path, std::uint64_t steps, const std::string& weights_digest) {
  std::ifstream in(path);
  const auto json = nlohmann::json::parse(in, nullptr, false);
  return json.is_object() && json.value("status", "") == "done" && json.value("steps", std::uint64_t{0}) == steps &&
         json.value("weights_digest", "") == weights_digest;
}

}  // namespace lockstep::train
