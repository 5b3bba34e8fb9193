// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/job/diagnostic.h"
#include "runtime/job/job.h"
#include "runtime/tensor/device.h"

namespace lockstep::train {

class RunObserver;

/// The output of a run on the terminal.
struct TrainOutput {
  bool quiet = false;  ///< errors and the result alone
  bool json = false;   ///< the lines of metrics.jsonl to stdout and nothing else; words go to stderr
  /// A command of the user's that gets these lines on stdin, too: runtime/train/record/event_command.h; empty: none.
  std::string on_event = {};
};

/// The steps of a run that are traced, both included.
struct TracedSteps {
  std::uint64_t from = 1;
  std::uint64_t to = 1;
};

struct TrainOptions {
  job::Job job;                   ///< as resolved
  std::filesystem::path run_dir;  ///< made where it is missing; rank 0 alone writes into it, but for last_events/
  std::string resume =
      "auto";  ///< "auto": the run directory's newest whole checkpoint; "never"; or a checkpoint's path
  std::chrono::system_clock::time_point process_start;  ///< for time_to_first_step_ms
  Device device = kCpu;                                 ///< what the world's communicator serves
  TrainOutput output = {};
  job::Locations locations;  ///< of the job's fields, for messages; may be empty
  /// The step that the run has come to: the last one, or the one at work; 0: start-up. For other threads, too.
  std::shared_ptr<std::atomic<std::uint64_t>> reached = std::make_shared<std::atomic<std::uint64_t>>(0);
  bool is_command = true;  ///< of this program: eval and resume are one, too, which the last line advises
  /// The epochs that the job gave in place of its steps, for who reads the run's job; train() fills it in.
  std::optional<double> epochs = {};
  std::vector<RunObserver*> observers = {};  ///< of the program around the run, on each rank that has some
  std::optional<TracedSteps> trace = {};     ///< into trace.json of the run directory
  /// Behind this step the run stops as if asked to: evaluated where the job evaluates there, saved, to be resumed.
  std::optional<std::uint64_t> until = {};
  /// The program's wish to end the run as if its steps were done, on any rank.
  std::shared_ptr<const std::atomic<bool>> end = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace lockstep::train
