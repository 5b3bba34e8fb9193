// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/set_aside.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include "runtime/base/files/durable_file.h"
#include "runtime/base/files/retry.h"
#include "runtime/base/files/storage_calls.h"

namespace lockstep::train {

namespace fs = std::filesystem;

namespace {

/// None where it is no directory.
std::vector<std::string> names_in(const fs::path& directory) {
  try {
    return with_retries({}, [&] { return list_directory(directory.string()); });
  } catch (const FileError& error) {
    if (error.error() == ENOTDIR) return {};
    throw;
  }
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// Copies the metrics, which lose the steps of what is set aside. Training needs neither.
void keep_metrics(const fs::path& run_dir, const fs::path& aside) {
  const CallUnderWay under_way(StorageOperation::kWrite, (aside / "metrics.jsonl").string());
  std::error_code error;
  fs::copy_file(run_dir / "metrics.jsonl", aside / "metrics.jsonl", error);
  if (!error || error == std::errc::no_such_file_or_directory) return;
  spdlog::warn("cannot copy {} to {}: {}; training goes on", (run_dir / "metrics.jsonl").string(), aside.string(),
               error.message());
}

/// Moves those entries of `directory` that `chosen` picks by name to the same place below a new folder of `run_dir`, if
/// there are any. That folder. Checkpoints are among them, so a power cut must find each in one place or the other.
fs::path set_aside(const fs::path& run_dir, const std::string& directory,
                   const std::function<bool(const std::string&)>& chosen) {
  const fs::path from = run_dir / directory;
  std::vector<std::string> names = names_in(from);
  std::erase_if(names, [&](const std::string& name) { return !chosen(name); });
  if (names.empty()) return {};
  const std::vector<std::string> taken = names_in(run_dir);
  int number = 1;
  while (holds(taken, "earlier-" + std::to_string(number))) ++number;
  const fs::path aside = run_dir / ("earlier-" + std::to_string(number));
  const fs::path to = aside / directory;
  with_retries({}, [&] { make_directories(to.string()); });
  if (!directory.empty()) keep_metrics(run_dir, aside);
  for (const std::string& name : names) {
    with_retries({}, [&] { rename_to_free_name((from / name).string(), (to / name).string()); });
  }
  // Where it arrived first.
  for (const fs::path& changed : {to, from}) {
    with_retries({}, [&] { sync_directory(changed.string()); });
  }
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
  const std::vector<std::string> names = names_in(run_dir);
  if (!holds(names, "checkpoints") && !holds(names, "metrics.jsonl")) return;
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
  } catch (const StorageError& error) {
    spdlog::warn("{}; steps may stand there twice, as it cannot be moved away: {}", why, error.what());
  }
}

}  // namespace lockstep::train
