// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/train/line_file.h"
#include "runtime/train/step_report.h"
#include "runtime/train/tensorboard.h"
#include "runtime/train/train.h"

namespace lockstep::train {

/// metrics.jsonl and TensorBoard's event file. A line a step, and lines with "event". Values that are not finite are
/// null.
class Metrics {
 public:
  /// Opens the files of `run_dir`. What they tell of steps behind `resumed_step` is dropped, as those steps are trained
  /// again; that a run failed, was stopped or restarted there stays. `echo`: print each line to stdout, too.
  Metrics(const std::filesystem::path& run_dir, std::uint64_t resumed_step, bool echo);

  /// What it writes is handed to the system once a second, for those who look on. Throws StorageError then.
  void step(const StepReport& report);
  void evaluation(std::uint64_t step, const EvalResult& result);
  /// A line of run_end.h's event_line().
  void event(const nlohmann::ordered_json& line);
  /// Hands what was written to the system. Throws StorageError, also where the file was deleted or replaced.
  void flush();
  /// Whether the file at its path still is the one that is written.
  bool in_place() const { return lines_.in_place(); }
  /// Of the last step in the file when it was opened; NaN where there was none.
  double last_loss() const { return last_loss_; }

 private:
  void add(const nlohmann::ordered_json& line);

  bool echo_;
  std::string echoed_;  ///< at the next flush
  double last_loss_;
  LineFile lines_;
  TensorBoardWriter tensorboard_;
  std::chrono::steady_clock::time_point flushed_ = std::chrono::steady_clock::now();
};

}  // namespace lockstep::train
