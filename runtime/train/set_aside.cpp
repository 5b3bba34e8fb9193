// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/set_aside.h"

#include <spdlog/spdlog.h>

#include <cstdio>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include "runtime/checkpoint/storage_calls.h"

namespace lockstep::train {

namespace fs = std::filesystem;

namespace {

/// Copies the metrics, which lose the steps of what is set aside. Training needs neither.
void keep_metrics(const fs::path& run_dir, const fs::path& aside) {
  std::error_code error;
  fs::copy_file(run_dir / "metrics.jsonl", aside / "metrics.jsonl", error);
  if (!error || error == std::errc::no_such_file_or_directory) return;
  spdlog::warn("cannot copy {} to {}: {}; training goes on", (run_dir / "metrics.jsonl").string(), aside.string(),
               error.message());
}

/// Moves those entries of `directory` that `chosen` picks by name to the same place below a new folder of `run_dir`, if
/// there are any. That folder.
fs::path set_aside(const fs::path& run_dir, const fs::path& directory,
                   const std::function<bool(const std::string&)>& chosen) {
  const checkpoint::CallUnderWay under_way(checkpoint::StorageOperation::kRename, (run_dir / directory).string());
  std::vector<fs::path> names;
  std::error_code missing;
  for (const fs::directory_entry& entry : fs::directory_iterator(run_dir / directory, missing)) {
    if (chosen(entry.path().filename().string())) names.push_back(directory / entry.path().filename());
  }
  if (names.empty()) return {};
  int number = 1;
  while (fs::exists(run_dir / ("earlier-" + std::to_string(number)))) ++number;
  const fs::path aside = run_dir / ("earlier-" + std::to_string(number));
  fs::create_directories(aside / directory);
  if (!directory.empty()) keep_metrics(run_dir, aside);
  for (const fs::path& name : names) fs::rename(run_dir / name, aside / name);
  return aside;
}

/// Names of checkpoints of steps behind `step`.
std::function<bool(const std::string&)> later_than(std::uint64_t step) {
  return [step](const std::string& name) {
    unsigned long long number = 0;
    char rest = 0;
    return std::sscanf(name.c_str(), "step-%llu%c", &number, &rest) == 1 && number > step;
  };
}

}  // namespace

void set_aside_earlier_run(const fs::path& run_dir) {
  if (!fs::exists(run_dir / "checkpoints") && !fs::exists(run_dir / "metrics.jsonl")) return;
  set_aside(run_dir, "", [](const std::string& name) {
    return name == "checkpoints" || name == "best" || name == "metrics.jsonl" || name == "summary.json" ||
           name == "job.pbtxt" || name.starts_with("events.out.tfevents.");
  });
}

void set_aside_later_checkpoints(const fs::path& run_dir, std::uint64_t step) {
  set_aside(run_dir, "checkpoints", later_than(step));
}

void set_aside_later_best(const fs::path& run_dir, std::uint64_t step) { set_aside(run_dir, "best", later_than(step)); }

void set_aside_record(const fs::path& file, const std::string& why) {
  try {
    const fs::path aside =
        set_aside(file.parent_path(), "", [&](const std::string& name) { return name == file.filename(); });
    if (aside.empty()) return spdlog::warn("{}; training goes on", why);
    spdlog::warn("{}; the file now lies in {}, and training goes on", why, aside.string());
  } catch (const fs::filesystem_error& error) {
    spdlog::warn("{}; steps may stand there twice, as it cannot be moved away: {}", why, error.code().message());
  }
}

}  // namespace lockstep::train
