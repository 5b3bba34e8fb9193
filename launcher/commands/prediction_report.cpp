// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/prediction_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "launcher/commands/text_table.h"
#include "runtime/train/step_prediction.h"

namespace lockstep::launcher {

using Json = nlohmann::ordered_json;

namespace {

/// Ranks and hosts beyond those of the run, whose times nobody has taken.
bool is_extrapolation(const comm::RankLayout& layout, const comm::RankLayout& run) {
  return layout.hosts() > run.hosts() || layout.ranks_per_host > run.ranks_per_host;
}

Json row_of(const train::MeasuredBatch& batch, const comm::RankLayout& layout, const comm::RankLinks& links,
            bool extrapolation) {
  const train::PredictedStep step = predict_step(batch.step, layout, links);
  const double samples = batch.samples * static_cast<double>(layout.ranks);
  return {{"ranks", layout.ranks},
          {"hosts", layout.hosts()},
          {"samples", samples},
          {"step_ms", step.step_ms},
          {"exposed_ms", step.exposed_ms},
          {"taken_ms", step.taken_ms},
          {"efficiency", batch.step.step_ms / step.step_ms},
          {"samples_per_s", 1e3 * samples / step.step_ms},
          {"extrapolation", extrapolation}};
}

/// The curve of the efficiency: a row's part of it.
std::string bar(double efficiency) {
  constexpr double kFull = 20;
  return std::string(static_cast<std::size_t>(std::lround(kFull * std::clamp(efficiency, 0.0, 1.0))), '#');
}

std::string source(const Json& measured) { return measured.get<bool>() ? "measured" : "not measured"; }

}  // namespace

Json prediction_of(const train::StepProfile& profile, const std::optional<train::MeasuredBatch>& half,
                   const PredictionOptions& options, const train::MeasuredLinks& measured) {
  const comm::RankLinks links = options.links(measured, profile.floors);
  Json network;
  if (links.network_gbps > 0) {
    network = {{"gbit_per_s", links.network_gbps},
               {"latency_us", links.latency_us},
               {"transport", links.hosts == comm::RankLinks::Between::kTcp ? "tcp" : "mpi"},
               {"measured", options.network_gbps == 0}};
  }
  const comm::RankLayout& run = measured.layout;
  const train::MeasuredBatch own{static_cast<double>(profile.samples) / static_cast<double>(run.ranks),
                                 profile.schedule};
  std::vector<train::MeasuredBatch> batches;
  for (const std::int64_t batch : options.batches) {
    const auto samples = static_cast<double>(batch);
    batches.push_back({samples, step_of(samples, own, half.value())});
  }
  if (batches.empty()) batches.push_back(own);
  Json rows = Json::array();
  for (const comm::RankLayout& layout : options.layouts(run)) {
    for (const train::MeasuredBatch& batch : batches) {
      const bool measured_samples = batch.samples <= own.samples && 2 * batch.samples >= own.samples;
      rows.push_back(row_of(batch, layout, links, is_extrapolation(layout, run) || !measured_samples));
    }
  }
  return {
      {"own_step_ms", profile.schedule.step_ms},
      {"spare_cores", measured.spare_cores},
      {"host", {{"alpha_us", links.host_alpha_us}, {"gb_per_s", links.host_gb_per_s}, {"measured", measured.in_host}}},
      {"network", std::move(network)},
      {"steps", std::move(rows)}};
}

std::string prediction_text(const Json& prediction) {
  const Json& host = prediction["host"];
  std::string text =
      fmt::format("\nprediction    {:.3f} ms of a rank's own a step; in a host {:.1f} us and {:.1f} GB/s, {}",
                  prediction["own_step_ms"].get<double>(), host["alpha_us"].get<double>(),
                  host["gb_per_s"].get<double>(), source(host["measured"]));
  if (const Json& network = prediction["network"]; !network.is_null()) {
    text += fmt::format("; between hosts {:.1f} us and {:.3g} Gbit/s over {}, {}", network["latency_us"].get<double>(),
                        network["gbit_per_s"].get<double>(), network["transport"].get<std::string>(),
                        network["measured"].get<bool>() ? "measured" : "as given");
  }
  std::vector<std::vector<std::string>> rows;
  for (const Json& row : prediction["steps"]) {
    rows.push_back(
        {fmt::format("{}", row["ranks"].get<std::int64_t>()), fmt::format("{}", row["hosts"].get<std::int64_t>()),
         fmt::format("{:.0f}", row["samples"].get<double>()), fmt::format("{:.3f}", row["step_ms"].get<double>()),
         fmt::format("{:.3f}", row["exposed_ms"].get<double>()), fmt::format("{:.3f}", row["taken_ms"].get<double>()),
         fmt::format("{:.1f} %", 100 * row["efficiency"].get<double>()),
         fmt::format("{:.0f}", row["samples_per_s"].get<double>()), bar(row["efficiency"].get<double>()),
         row["extrapolation"].get<bool>() ? "extrapolation" : ""});
  }
  const auto number = [](const char* title) { return TableColumn{.title = title, .right = true}; };
  return text + "\n\n" +
         text_table({number("ranks"),
                     number("hosts"),
                     number("samples"),
                     number("step ms"),
                     number("exposed ms"),
                     number("taken ms"),
                     number("efficiency"),
                     number("samples/s"),
                     {.title = "of a rank's own"},
                     {.title = ""}},
                    std::move(rows), 0);
}

}  // namespace lockstep::launcher
