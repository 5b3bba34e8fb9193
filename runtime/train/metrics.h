// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "runtime/train/tensorboard.h"
#include "runtime/train/train.h"

namespace lockstep::train {

/// What one optimizer step did.
struct StepReport {
  std::uint64_t step = 0;  ///< counted from 1
  std::uint64_t epoch = 0;
  double loss = 0.0;  ///< mean over the global batch
  double lr = 0.0;
  double loss_scale = 1.0;  ///< that the step used
  bool skipped = false;
  std::string parameter;  ///< of a skip: the first bad one
  int rank = -1;          ///< of a skip: the first rank whose gradient was bad; -1: only the sum over ranks was
  std::int64_t samples = 0;
  double seconds = 0.0;
};

/// metrics.jsonl and TensorBoard's event file. A line a step, and lines with "event". Values that are not finite are
/// null.
class Metrics {
 public:
  /// Opens the files of `run_dir`. Lines of steps behind `resumed_step` are dropped: those steps are trained again.
  Metrics(const std::filesystem::path& run_dir, std::uint64_t resumed_step);

  /// What it writes is handed to the system once a second, for those who look on. Throws StorageError then.
  void step(const StepReport& report);
  void evaluation(std::uint64_t step, const EvalResult& result);
  /// {"event": name, "step": step, "detail": detail}
  void event(const std::string& name, std::uint64_t step, const std::string& detail);
  /// Hands what was written to the system. Throws StorageError.
  void flush();
  /// Of the last step in the file when it was opened; NaN where there was none.
  double last_loss() const { return last_loss_; }

 private:
  std::filesystem::path path_;
  std::ofstream lines_;
  TensorBoardWriter tensorboard_;
  double last_loss_;
  std::chrono::steady_clock::time_point flushed_ = std::chrono::steady_clock::now();
};

}  // namespace lockstep::train
