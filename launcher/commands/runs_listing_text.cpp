// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "launcher/commands/runs_listing.h"
#include "launcher/commands/text_table.h"
#include "runtime/base/printable.h"
#include "runtime/train/infer/prediction_text.h"
#include "runtime/train/record/terminal.h"

namespace lockstep::launcher {

using Json = nlohmann::ordered_json;

namespace {

double seconds_since(double time) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return std::fmax(0.0, now.count() - time);
}

/// "12s", "5m", "3h", "4d"
std::string age_text(double time) {
  if (std::isnan(time)) return {};
  const double seconds = seconds_since(time);
  if (seconds < 60) return fmt::format("{:.0f}s", std::floor(seconds));
  if (seconds < 3600) return fmt::format("{:.0f}m", std::floor(seconds / 60));
  return seconds < 48 * 3600 ? fmt::format("{:.0f}h", std::floor(seconds / 3600))
                             : fmt::format("{:.0f}d", std::floor(seconds / 86400));
}

std::string metric_name(const train::BestValue& best) {
  constexpr std::string_view kEval = "eval.";
  return best.metric.starts_with(kEval) ? best.metric.substr(kEval.size()) : best.metric;
}

std::string best_text(const train::RunRecord& run) {
  if (!run.best) return {};
  // Behind ">=" may be a better one, in the part of a long file that was not read.
  return fmt::format("{} {}{:.4g}", metric_name(*run.best), run.best_of_all ? "" : ">=", run.best->value);
}

std::string settings_text(const train::Settings& settings, const std::map<std::string, std::string>& names) {
  std::string text;
  for (const auto& [path, value] : settings) {
    text += (text.empty() ? "" : " ") + names.at(path) + "=" + value;
  }
  return printable(text);
}

std::string step_text(const train::RunRecord& run) {
  if (run.steps == 0) return run.step == 0 ? "" : std::to_string(run.step);
  return fmt::format("{}/{}", run.step, run.steps);
}

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json to_json(const std::string& name, const train::RunRecord& run, const train::Settings& settings) {
  Json json{{"run", name},
            {"directory", run.directory.string()},
            {"status", name_of(run.status)},
            {"step", run.step},
            {"steps", nullptr},
            {"best", nullptr},
            {"samples_per_s", number_or_null(run.samples_per_s)},
            {"last_time", number_or_null(run.last_time)},
            {"age_s", std::isnan(run.last_time) ? Json(nullptr) : Json(seconds_since(run.last_time))},
            {"exit_code", nullptr},
            {"settings", settings},
            {"problems", run.problems}};
  if (run.steps > 0) json["steps"] = run.steps;
  if (run.exit_code) json["exit_code"] = *run.exit_code;
  if (run.best) {
    json["best"] = {{"metric", run.best->metric},
                    {"value", run.best->value},
                    {"step", run.best->step},
                    {"of_all", run.best_of_all}};
  }
  return json;
}

}  // namespace

std::size_t width_of_stdout() {
  const int columns = train::terminal_columns(STDOUT_FILENO);
  return columns > 0 ? static_cast<std::size_t>(columns) : 0;
}

std::string listing_text(const RunsListing& listing, std::size_t width) {
  const auto names = train::short_names(listing.settings);
  std::vector<std::vector<std::string>> rows;
  std::string problems;
  for (std::size_t i = 0; i < listing.runs.size(); ++i) {
    const train::RunRecord& run = listing.runs[i];
    const std::string name = printable(listing.names[i]);
    rows.push_back({name, std::string(name_of(run.status)), step_text(run), printable(best_text(run)),
                    run.best ? std::to_string(run.best->step) : "",
                    std::isnan(run.samples_per_s) ? "" : fmt::format("{:.0f}", run.samples_per_s),
                    age_text(run.last_time), settings_text(listing.settings[i], names)});
    for (const std::string& problem : run.problems) problems += name + ": " + printable(problem) + "\n";
  }
  return text_table({{.title = "run", .least = 12},
                     {.title = "status", .goes = 1},
                     {.title = "step", .right = true, .goes = 2},
                     {.title = "best", .goes = 3},
                     {.title = "at", .right = true, .goes = 5},
                     {.title = "samples/s", .right = true, .goes = 6},
                     {.title = "age", .right = true, .goes = 7},
                     {.title = "differs", .goes = 4, .least = 16}},
                    std::move(rows), width) +
         (problems.empty() ? "" : "\n" + problems);
}

Json to_json(const RunsListing& listing) {
  Json list = Json::array();
  for (std::size_t i = 0; i < listing.runs.size(); ++i) {
    list.push_back(to_json(listing.names[i], listing.runs[i], listing.settings[i]));
  }
  return list;
}

std::string listing_csv(const RunsListing& listing) {
  const auto paths = train::short_names(listing.settings);
  std::string text = "run,status,step,steps,metric,best,best_step,samples_per_s,age_s,exit_code";
  for (const auto& [path, name] : paths) text += "," + train::csv_cell(path);
  text += ",problems\n";
  const auto number = [](double value) { return std::isfinite(value) ? fmt::format("{}", value) : std::string(); };
  for (std::size_t i = 0; i < listing.runs.size(); ++i) {
    const train::RunRecord& run = listing.runs[i];
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{}", train::csv_cell(listing.names[i]), name_of(run.status), run.step,
        run.steps > 0 ? std::to_string(run.steps) : "", run.best ? train::csv_cell(metric_name(*run.best)) : "",
        run.best ? number(run.best->value) : "", run.best ? std::to_string(run.best->step) : "",
        number(run.samples_per_s), std::isnan(run.last_time) ? "" : number(seconds_since(run.last_time)),
        run.exit_code ? std::to_string(*run.exit_code) : "");
    for (const auto& [path, name] : paths) {
      const auto value = listing.settings[i].find(path);
      text += "," + (value == listing.settings[i].end() ? "" : train::csv_cell(value->second));
    }
    std::string problems;
    for (const std::string& problem : run.problems) problems += (problems.empty() ? "" : "; ") + problem;
    text += "," + train::csv_cell(problems) + "\n";
  }
  return text;
}

}  // namespace lockstep::launcher
