// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/history/report_data.h"

#include <fmt/format.h>
#include <lockstep/version.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/files/durable_file.h"
#include "runtime/base/json_text.h"
#include "runtime/base/program_name.h"
#include "runtime/base/shell_word.h"
#include "runtime/job/saved_job.h"
#include "runtime/train/history/curves.h"
#include "runtime/train/history/event_text.h"
#include "runtime/train/history/find_runs.h"
#include "runtime/train/history/metrics_lines.h"
#include "runtime/train/history/run_attachments.h"
#include "runtime/train/history/run_record.h"
#include "runtime/train/history/varied_settings.h"

namespace lockstep::train {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

/// Of a curve; those of many runs have fewer, so that the page stays small.
constexpr std::size_t kMostPoints = 2000;
constexpr std::size_t kLeastPoints = 400;
constexpr std::size_t kPointsOfAllRuns = 16'000;
/// Beyond, a run that was resumed and evaluated for weeks would fill the page.
constexpr std::size_t kMostEvents = 2000;

struct Lines {
  explicit Lines(CurveGrid grid) : curves(grid) {}

  Curves curves;
  Json events = Json::array();
  Json evals = Json::array();
  std::size_t left_out = 0;
};

void add_event(const Json& line, Lines& lines) {
  const bool is_eval = field_of(line, "event") == "eval";
  Json& list = is_eval ? lines.evals : lines.events;
  if (list.size() >= kMostEvents) {
    ++lines.left_out;
    return;
  }
  if (is_eval) {
    list.push_back(line);
  } else {
    list.push_back({{"event", field_of(line, "event")},
                    {"step", field_of(line, "step")},
                    {"time", field_of(line, "time")},
                    {"text", event_text(line)}});
  }
}

Lines read_lines(RunRecord& run, CurveGrid grid) {
  Lines lines(grid);
  try {
    for_each_line(run.directory / "metrics.jsonl", [&](std::string_view text) {
      const Json line = parse_ordered_json(text);
      if (line.is_object()) field_of(line, "event").is_null() ? lines.curves.add(line) : add_event(line, lines);
      return true;
    });
  } catch (const StorageError&) {
    // read_run() has said so.
  }
  if (lines.left_out > 0) run.problems.push_back(fmt::format("{} later events are left out", lines.left_out));
  return lines;
}

std::string text_of_job(const fs::path& run) {
  try {
    return read_file((run / "job.pbtxt").string(), job::kMostSavedBytes);
  } catch (const StorageError&) {
    return {};
  }
}

/// What trains such a run again, beside this one.
std::string command_of(const RunRecord& run) {
  std::string command = program_name() + " train " + shell_word((run.directory / "job.pbtxt").string());
  const Json& ranks = field_of(run.summary, "world_size");
  if (ranks.is_number_integer() && ranks.get<int>() > 1) command += fmt::format(" --nproc {}", ranks.get<int>());
  const Json& device = field_of(run.summary, "device");
  // "cuda:0" is one of "cuda".
  if (device.is_string()) {
    const std::string name = device.get<std::string>();
    command += " --device " + shell_word(name.substr(0, name.find(':')));
  }
  const fs::path plain = run.directory.lexically_normal();
  const fs::path place = plain.has_filename() ? plain : plain.parent_path();
  return command + " --run-dir " + shell_word(place.string() + "-again");
}

Json to_json(RunRecord& run, const std::string& name, const Settings& settings, CurveGrid grid) {
  const Lines lines = read_lines(run, grid);
  const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); };
  Json json{{"name", name},
            {"directory", run.directory.string()},
            {"status", name_of(run.status)},
            {"step", run.step},
            {"steps", run.steps},
            {"best", nullptr},
            {"samples_per_s", number(run.samples_per_s)},
            {"last_time", number(run.last_time)},
            {"settings", settings},
            {"job", text_of_job(run.directory)},
            {"command", command_of(run)},
            {"summary", run.summary},
            {"events", lines.events},
            {"evals", lines.evals},
            {"curves", lines.curves.to_json()},
            {"confusion", confusion_of(run.directory)},
            {"pictures", pictures_of(run.directory)},
            {"texts", texts_of(run.directory)}};
  if (run.best) {
    json["best"] = {{"metric", run.best->metric}, {"value", run.best->value}, {"step", run.best->step}};
  }
  json["problems"] = run.problems;
  return json;
}

/// Paths without the folders that all have in common.
std::vector<std::string> names_of(const std::vector<fs::path>& directories) {
  std::vector<std::string> names;
  fs::path common = directories.front().parent_path();
  const auto is_common = [&](const fs::path& path) {
    const fs::path relative = path.lexically_relative(common);
    return !relative.empty() && *relative.begin() != "..";
  };
  while (!common.empty() && common != common.parent_path() && !std::ranges::all_of(directories, is_common)) {
    common = common.parent_path();
  }
  for (const fs::path& directory : directories) {
    const fs::path relative = common.empty() ? directory : directory.lexically_relative(common);
    names.push_back(relative.empty() ? directory.string() : relative.string());
  }
  return names;
}

}  // namespace

Json report_data(std::span<const fs::path> runs) {
  std::vector<RunRecord> records;
  std::vector<fs::path> directories;
  std::uint64_t steps = 0;
  for (const fs::path& directory : runs) {
    if (!holds_run(directory)) {
      throw StorageError(directory.string() + " is no run's directory",
                         "Name directories that `lockstep train` has written: `lockstep runs FOLDER` lists them.");
    }
    records.push_back(read_run(directory));
    const fs::path plain = fs::absolute(directory).lexically_normal();
    directories.push_back(plain.has_filename() ? plain : plain.parent_path());
    steps = std::max(steps, records.back().step);
  }
  const std::size_t points =
      std::clamp(kPointsOfAllRuns / std::max<std::size_t>(runs.size(), 1), kLeastPoints, kMostPoints);
  const CurveGrid grid = CurveGrid::of(steps, points);
  const std::vector<Settings> settings = varied_settings(records, false);
  const std::vector<std::string> names = names_of(directories);
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  Json json{{"made", now.count()},
            {"version", kVersion},
            {"steps_a_bucket", grid.steps_a_bucket},
            {"short_names", short_names(settings)},
            {"runs", Json::array()}};
  for (std::size_t i = 0; i < records.size(); ++i) {
    json["runs"].push_back(to_json(records[i], names[i], settings[i], grid));
  }
  return json;
}

}  // namespace lockstep::train
