// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/train/record/earlier_metrics.h"
#include "runtime/train/record/eval_result.h"
#include "runtime/train/record/event_command.h"
#include "runtime/train/record/line_file.h"
#include "runtime/train/record/output_writer.h"
#include "runtime/train/record/step_report.h"
#include "runtime/train/record/tensorboard.h"

namespace lockstep::train {

/// metrics.jsonl and TensorBoard's event file. A line a step, and lines with "event". Values that are not finite are
/// null.
class Metrics {
 public:
  /// The files of `run_dir`, which `output` opens and writes; it outlives this. What they tell of steps behind
  /// `resumed_step` is dropped, as those steps are trained again; that a run failed, was stopped or restarted there
  /// stays. What cannot be read or rewritten for that, or is no regular file, is set aside. `echo`: print each line to
  /// stdout, too. `listener`: is told each line, too; null: none is.
  Metrics(OutputWriter& output, const std::filesystem::path& run_dir, std::uint64_t resumed_step, bool echo,
          EventCommand* listener = nullptr);

  // No call waits for the disk. They throw StorageError once the file was deleted or replaced.
  void step(const StepReport& report);
  /// Nothing where the file has it already: a run that had ended evaluates again when it is started again.
  void evaluation(std::uint64_t step, const EvalResult& result);
  /// A line of run_end.h's event_line().
  void event(const nlohmann::ordered_json& line);
  /// metrics.jsonl; for the writer's thread, on which it may outlive this.
  std::shared_ptr<const LineFile> file() const { return lines_; }
  /// The loss of the last step in the file before this run; NaN where there was none.
  double last_loss() const { return earlier_.loss; }

 private:
  void add(const nlohmann::ordered_json& line);

  OutputWriter& output_;
  EarlierMetrics earlier_;
  std::shared_ptr<LineFile> lines_;
  OutputWriter::SinkId sink_;
  EventCommand* listener_;
  TensorBoardWriter tensorboard_;
};

}  // namespace lockstep::train
