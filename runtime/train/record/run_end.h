// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/base/error.h"

namespace lockstep::train {

/// How a run ended: what summary.json begins with.
struct RunEnd {
  enum class Status { kDone, kPreempted, kFailed };
  Status status = Status::kDone;
  ExitCode code = ExitCode::kDone;  ///< of the process, as far as the writer knows
  std::uint64_t step = 0;           ///< that the run had come to: the last one, or the one that failed
  int restarts = 0;                 ///< of the ranks, before
  std::string message;              ///< of an error; empty where there is none
  std::string advice;
  std::string where;        ///< "rank 1, in step 57, backward"
  std::string mpirun_said;  ///< where it could not start the ranks; may be empty
  bool is_guess = false;    ///< anything that others have recorded is better
};

/// The end that an error means: an Error with kPreempted is no failure.
RunEnd end_of(const Error& error, std::uint64_t step, const std::string& where, int restarts);

/// Writes `summary`, a JSON object, as the run directory's summary.json, beginning with `end`. Where another process of
/// the same run, which began at `since`, has told of an end that explains this one, its word stays. Throws
/// StorageError.
void write_summary(const std::filesystem::path& run_dir, const RunEnd& end, const nlohmann::ordered_json& summary,
                   std::chrono::system_clock::time_point since);

/// For a process other than rank 0: notes the end in summary.json, beside what others of the same run may have written
/// there. Numbers that nobody has told of stay unknown. An error that explains more than `end` stays; so does any end
/// where `end` is a guess. Nothing happens where there is no run directory. Throws StorageError.
void record_end(const std::filesystem::path& run_dir, const RunEnd& end, std::chrono::system_clock::time_point since);

/// For whoever survives all ranks: adds the event of the end that summary.json tells of to metrics.jsonl, and with
/// `echo` to stdout, unless rank 0 did so. Throws StorageError.
void record_event_of_end(const std::filesystem::path& run_dir, std::chrono::system_clock::time_point since, bool echo);

/// Both, in a run directory that no other run holds; for an end before rank 0 held it, or after all ranks have ended.
/// Failures to do so are not reported: there is an error already that the user has to hear of.
void record_end_from_outside(const std::filesystem::path& run_dir, const RunEnd& end,
                             std::chrono::system_clock::time_point since, bool echo) noexcept;

/// Makes the run directory and records a failure from before there was one. Does nothing for a refusal
/// (ExitCode::kUsage).
void record_early_failure(const std::filesystem::path& run_dir, const Error& error,
                          std::chrono::system_clock::time_point since, bool echo) noexcept;

/// Whether an end must not be recorded: a run that was refused, with exit code 2, leaves the record of an earlier one
/// as it was.
bool leaves_earlier_record(const std::filesystem::path& run_dir, ExitCode code);

/// Adds an event to metrics.jsonl, where no Metrics does; with `echo` prints it to stdout, too. Throws StorageError.
void append_event(const std::filesystem::path& run_dir, const nlohmann::ordered_json& line, bool echo);

/// An event's line for metrics.jsonl: {"event": ..., "step": ..., "time": seconds since 1970}
nlohmann::ordered_json event_line(const std::string& event, std::uint64_t step);
/// The event that tells of an end: "done", "preempted" or "failed".
nlohmann::ordered_json event_line(const RunEnd& end);
/// One line of JSON; bytes that are not UTF-8 are replaced.
std::string one_line(const nlohmann::ordered_json& json);

}  // namespace lockstep::train
