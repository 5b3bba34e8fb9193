// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/summary.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/json_text.h"
#include "runtime/tensor/memory.h"
#include "runtime/train/record/run_files.h"

namespace lockstep::train {

namespace {

/// A number a class; null for one that occurs nowhere.
nlohmann::ordered_json of_classes(const EvalResult& result, double ClassOverlap::*number) {
  auto list = nlohmann::ordered_json::array();
  for (const ClassOverlap& overlap : result.overlaps) {
    list.push_back(overlap.occurs ? nlohmann::ordered_json(overlap.*number) : nlohmann::ordered_json(nullptr));
  }
  return list;
}

}  // namespace

nlohmann::ordered_json to_json(const EvalResult& result) {
  nlohmann::ordered_json json{{"samples", result.samples}, {"loss", result.loss}};
  for (const Metric& metric : result.metrics) json[metric.name] = metric.value;
  if (!result.overlaps.empty()) {
    json["class_dice"] = of_classes(result, &ClassOverlap::dice);
    json["class_iou"] = of_classes(result, &ClassOverlap::iou);
  }
  for (const Metric& metric : result.baseline) json["baseline"][metric.name] = metric.value;
  if (result.of_mean) json["weights"] = "mean";
  if (result.skipped_samples) json["skipped_samples"] = *result.skipped_samples;
  return json;
}

namespace fs = std::filesystem;

MemoryPeaks memory_peaks(Device device) {
  MemoryPeaks peaks{.all = memory_statistics(device).peak, .by_purpose = {}};
  for (std::size_t i = 0; i < kMemoryPurposes; ++i) {
    const auto purpose = static_cast<MemoryPurpose>(i);
    const std::size_t peak = memory_use(device, purpose).peak;
    if (peak == 0) continue;
    std::string name(name_of(purpose));
    std::ranges::replace(name, ' ', '_');
    peaks.by_purpose.emplace(std::move(name), peak);
  }
  return peaks;
}

nlohmann::ordered_json to_json(const Summary& summary) {
  nlohmann::ordered_json json{{"world_size", summary.world_size},       {"device", summary.device},
                              {"precision", summary.precision},         {"steps", summary.steps},
                              {"applied_steps", summary.applied_steps}, {"skipped_steps", summary.skipped_steps},
                              {"final_loss", summary.final_loss}};
  json["transport"] = nullptr;
  if (!summary.transport.empty()) json["transport"] = summary.transport;
  if (summary.skipped_samples) json["skipped_samples"] = *summary.skipped_samples;
  if (summary.eval) json["eval"] = to_json(*summary.eval);
  json["samples_per_s"] = summary.samples_per_s;
  json["step_ms_p50"] = summary.step_ms_p50;
  json["wait_data_ms_p50"] = summary.wait_data_ms_p50;
  json["queue_depth_p50"] = summary.queue_depth_p50;
  json["time_to_first_step_ms"] = summary.time_to_first_step_ms;
  json["mpi_init_ms"] = summary.mpi_init_ms;
  json["peak_memory_bytes"] = summary.memory.all;
  json["peak_memory_of"] = summary.memory.by_purpose;
  json["weights_digest"] = nullptr;
  if (!summary.weights_digest.empty()) json["weights_digest"] = summary.weights_digest;
  if (!summary.environment.empty()) json["environment"] = nlohmann::ordered_json::parse(summary.environment);
  for (const auto& [path, count] : summary.lost_output) json["lost_output"][fs::path(path).filename()] = count;
  if (summary.gpu) {
    json["gpu"] = {{"name", summary.gpu->name},
                   {"launch_us_p50", summary.gpu->launch_us_p50},
                   {"host_waits", summary.gpu->host_waits},
                   {"graph_launches", summary.gpu->graph_launches}};
  }
  return json;
}

bool describes(const fs::path& path, std::uint64_t steps, const std::string& weights_digest) {
  const nlohmann::ordered_json json = read_json(path);
  return field_of(json, "status") == "done" && field_of(json, "steps") == steps &&
         field_of(json, "weights_digest") == weights_digest;
}

}  // namespace lockstep::train
