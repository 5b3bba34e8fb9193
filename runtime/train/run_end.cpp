// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/run_end.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/base/descriptor.h"
#include "runtime/train/line_file.h"
#include "runtime/train/restarts.h"
#include "runtime/train/run_files.h"
#include "runtime/train/run_lock.h"

namespace lockstep::train {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using std::chrono::system_clock;

namespace {

const char* name_of(RunEnd::Status status) {
  switch (status) {
    case RunEnd::Status::kDone:
      return "done";
    case RunEnd::Status::kPreempted:
      return "preempted";
    case RunEnd::Status::kFailed:
      break;
  }
  return "failed";
}

Json to_json(const RunEnd& end) {
  Json json{{"status", name_of(end.status)}, {"exit_code", static_cast<int>(end.code)}, {"error", nullptr}};
  if (!end.message.empty()) {
    json["error"] = {{"message", end.message}, {"advice", end.advice}, {"where", end.where}};
  }
  json["step"] = end.step;
  json["restarts"] = end.restarts;
  return json;
}

/// Held while a process reads what others have recorded and writes its own: ranks that fail together would otherwise
/// overwrite each other. Nothing is held where the file system knows no locks, or a stopped process does not let go.
class RecordLock {
 public:
  explicit RecordLock(const fs::path& run_dir) : directory_(open(run_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    constexpr auto kPatience = std::chrono::seconds(1);
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (flock(directory_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK &&
           std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  Descriptor directory_;
};

/// What a process of the run that began at `since` has written; an empty object where none has.
Json recorded(const fs::path& path, system_clock::time_point since) {
  std::error_code missing;
  const auto written = fs::last_write_time(path, missing);
  if (missing || std::chrono::file_clock::to_sys(written) < since) return Json::object();
  std::ifstream in(path);
  Json json = Json::parse(in, nullptr, false);
  return json.is_object() && json.contains("status") ? json : Json::object();
}

/// Whether the recorded end is an error of a rank's own, which explains why others lost that rank.
bool is_own_error(const Json& recorded) {
  const int lost = static_cast<int>(ExitCode::kPeerLost);
  return recorded.value("status", "") == "failed" && recorded.value("exit_code", lost) != lost;
}

/// Whether a recorded end says at least as much as that of a process other than rank 0.
bool says_enough(const Json& recorded, const RunEnd& end) {
  if (!recorded.empty() && end.is_guess) return true;
  const bool stopped = end.status == RunEnd::Status::kPreempted && recorded.value("status", "") == "preempted";
  return stopped || is_own_error(recorded);
}

/// An empty value where there is none, or where it is no JSON.
Json last_line(const fs::path& path) {
  constexpr std::streamoff kTail = 64 << 10;
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return {};
  in.seekg(std::max<std::streamoff>(in.tellg() - std::streampos(kTail), 0));
  std::string last;
  for (std::string line; std::getline(in, line);) last = line;
  return Json::parse(last, nullptr, false);
}

bool tells_of_end(const Json& line, system_clock::time_point since) {
  const std::chrono::duration<double> begin = since.time_since_epoch();
  const std::string event = line.is_object() ? line.value("event", "") : "";
  return (event == "done" || event == "preempted" || event == "failed") && line.value("time", 0.0) >= begin.count();
}

}  // namespace

RunEnd end_of(const Error& error, std::uint64_t step, const std::string& where, int restarts) {
  const bool asked = error.code() == ExitCode::kPreempted;
  return {.status = asked ? RunEnd::Status::kPreempted : RunEnd::Status::kFailed,
          .code = error.code(),
          .step = step,
          .restarts = restarts,
          .message = error.what(),
          .advice = error.advice(),
          .where = where};
}

void write_summary(const fs::path& run_dir, const RunEnd& end, const Json& summary, system_clock::time_point since) {
  const RecordLock lock(run_dir);
  const fs::path path = run_dir / "summary.json";
  const Json earlier = recorded(path, since);
  Json json = to_json(end);
  if (end.code == ExitCode::kPeerLost && is_own_error(earlier)) {
    for (const char* field : {"status", "exit_code", "error"}) json[field] = earlier.value(field, Json());
  }
  json.update(summary);
  write_text(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void record_end(const fs::path& run_dir, const RunEnd& end, system_clock::time_point since) {
  if (!fs::is_directory(run_dir)) return;
  const RecordLock lock(run_dir);
  const fs::path path = run_dir / "summary.json";
  const Json earlier = recorded(path, since);
  if (says_enough(earlier, end) || (earlier.empty() && leaves_earlier_record(run_dir, end.code))) return;
  Json json = to_json(end);
  for (const auto& [name, value] : earlier.items()) {
    if (!json.contains(name)) json[name] = value;
  }
  write_text(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void record_event_of_end(const fs::path& run_dir, system_clock::time_point since, bool echo) {
  const Json summary = recorded(run_dir / "summary.json", since);
  if (summary.empty() || tells_of_end(last_line(run_dir / "metrics.jsonl"), since)) return;
  Json line = event_line(summary.value("status", "failed"), summary.value("step", std::uint64_t{0}));
  line["exit_code"] = summary["exit_code"];
  if (summary["error"].is_object()) {
    line["detail"] = summary["error"]["message"];
    line["where"] = summary["error"]["where"];
  }
  append_event(run_dir, line, echo);
}

void record_end_from_outside(const fs::path& run_dir, const RunEnd& end, system_clock::time_point since,
                             bool echo) noexcept {
  try {
    // One that was deleted does not come back.
    if (!fs::is_directory(run_dir)) return;
    // Not where another run is training, which is why this one may have ended.
    const RunLock lock(run_dir, std::chrono::milliseconds(0));
    record_end(run_dir, end, since);
    record_event_of_end(run_dir, since, echo);
  } catch (const std::exception&) {
    // As promised.
  }
}

void record_early_failure(const fs::path& run_dir, const Error& error, system_clock::time_point since,
                          bool echo) noexcept {
  if (error.code() == ExitCode::kUsage) return;
  std::error_code failed;  // then there is no directory, and nothing happens
  fs::create_directories(run_dir, failed);
  record_end_from_outside(run_dir, end_of(error, 0, "during start-up", restart_count()), since, echo);
}

void append_event(const fs::path& run_dir, const Json& line, bool echo) {
  LineFile(run_dir / "metrics.jsonl").append(one_line(line) + '\n');
  if (!echo) return;
  std::printf("%s\n", one_line(line).c_str());
  std::fflush(stdout);
}

bool leaves_earlier_record(const fs::path& run_dir, ExitCode code) {
  return code == ExitCode::kUsage && (fs::exists(run_dir / "summary.json") || fs::exists(run_dir / "metrics.jsonl") ||
                                      fs::exists(run_dir / "checkpoints"));
}

Json event_line(const std::string& event, std::uint64_t step) {
  const std::chrono::duration<double> now = system_clock::now().time_since_epoch();
  return {{"event", event}, {"step", step}, {"time", now.count()}};
}

Json event_line(const RunEnd& end) {
  Json line = event_line(name_of(end.status), end.step);
  line["exit_code"] = static_cast<int>(end.code);
  if (!end.message.empty()) line["detail"] = end.message;
  if (!end.where.empty()) line["where"] = end.where;
  return line;
}

std::string one_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace lockstep::train
