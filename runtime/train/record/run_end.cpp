// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/run_end.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <thread>

#include "runtime/base/descriptor.h"
#include "runtime/base/files/durable_file.h"
#include "runtime/base/json_text.h"
#include "runtime/train/record/line_file.h"
#include "runtime/train/record/record_room.h"
#include "runtime/train/record/restarts.h"
#include "runtime/train/record/run_files.h"
#include "runtime/train/record/run_lock.h"

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
    if (!end.mpirun_said.empty()) json["error"]["mpirun"] = end.mpirun_said;
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
    constexpr auto kLockPatience = std::chrono::seconds(1);
    const auto end = std::chrono::steady_clock::now() + kLockPatience;
    while (flock(directory_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK &&
           std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  Descriptor directory_;
};

/// The file that a process of the run that began at `since` has written; an empty object where none has.
Json recorded(const fs::path& path, system_clock::time_point since) {
  std::error_code missing;
  const auto written = fs::last_write_time(path, missing);
  if (missing || std::chrono::file_clock::to_sys(written) < since) return Json::object();
  Json json = read_json(path);
  return field_of(json, "status").is_string() ? json : Json::object();
}

/// Throws StorageError.
void write_record(const fs::path& run_dir, const Json& summary) {
  const std::string text = summary.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  try {
    write_text(run_dir / "summary.json", text);
  } catch (const StorageError&) {
    if (!write_into_record_room(run_dir, text)) throw;
  }
}

/// Whether the recorded end is an error of a rank's own, which explains why others lost that rank.
bool is_own_error(const Json& recorded) {
  const Json& code = field_of(recorded, "exit_code");
  return field_of(recorded, "status") == "failed" && code.is_number() && code != static_cast<int>(ExitCode::kPeerLost);
}

/// Whether a recorded end says at least as much as that of a process other than rank 0.
bool says_enough(const Json& recorded, const RunEnd& end) {
  if (!recorded.empty() && end.is_guess) return true;
  const bool stopped = end.status == RunEnd::Status::kPreempted && field_of(recorded, "status") == "preempted";
  return stopped || is_own_error(recorded);
}

/// A value that is no object where there is none, where it is no JSON, or where it cannot be read.
Json last_line(const fs::path& path) {
  constexpr std::uint64_t kTail = 64 << 10;
  try {
    const InputFile file(path.string());
    std::string tail(std::min(file.size(), kTail), '\0');
    file.read(file.size() - tail.size(), std::as_writable_bytes(std::span(tail)));
    if (tail.ends_with('\n')) tail.pop_back();
    return parse_ordered_json(std::string_view(tail).substr(tail.rfind('\n') + 1));
  } catch (const StorageError&) {
    return {};
  }
}

bool tells_of_end(const Json& line, system_clock::time_point since) {
  const std::chrono::duration<double> begin = since.time_since_epoch();
  const Json& event = field_of(line, "event");
  const Json& time = field_of(line, "time");
  return (event == "done" || event == "preempted" || event == "failed") && time.is_number() &&
         time.get<double>() >= begin.count();
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
    for (const char* field : {"status", "exit_code", "error"}) json[field] = field_of(earlier, field);
  }
  json.update(summary);
  write_record(run_dir, json);
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
  write_record(run_dir, json);
}

void record_event_of_end(const fs::path& run_dir, system_clock::time_point since, bool echo) {
  const Json summary = recorded(run_dir / "summary.json", since);
  if (summary.empty() || tells_of_end(last_line(run_dir / "metrics.jsonl"), since)) return;
  const Json& step = field_of(summary, "step");
  const Json& error = field_of(summary, "error");
  Json line = event_line(summary["status"], step.is_number_unsigned() ? step.get<std::uint64_t>() : 0);
  line["exit_code"] = field_of(summary, "exit_code");
  if (error.is_object()) {
    line["detail"] = field_of(error, "message");
    line["where"] = field_of(error, "where");
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
    return_record_room(run_dir);
    record_event_of_end(run_dir, since, echo);
  } catch (const std::exception&) {
    // Nothing throws out of here: the run has ended.
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
