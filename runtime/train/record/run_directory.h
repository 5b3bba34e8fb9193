// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/train/record/event_command.h"
#include "runtime/train/record/metrics.h"
#include "runtime/train/record/output_writer.h"
#include "runtime/train/record/run_end.h"
#include "runtime/train/record/run_lock.h"
#include "runtime/train/record/run_observer.h"
#include "runtime/train/record/summary.h"
#include "runtime/train/record/train_options.h"

namespace lockstep::train {

/// The files that rank 0 writes into the run directory, which it keeps to one run at a time: the job, metrics.jsonl,
/// TensorBoard's curves and summary.json. Every end of the run is recorded, its failures too. Once the run has begun,
/// an OutputWriter writes: a disk that is slow, full or failing neither delays training nor ends it; a slow one delays
/// a save.
class RunDirectory final : public RunObserver {
 public:
  /// Takes possession of the run directory. Throws UsageError where another run is training there, StorageError.
  RunDirectory(const TrainOptions& options, int world_size, const std::string& transport, double mpi_init_ms);
  ~RunDirectory() override;

  /// Writes the job: the run is ready to train what follows `step`, with so many steps applied and skipped before,
  /// and samples skipped. `resumed_from`: the checkpoint, or nothing. `environment`: the ComputeEnvironment as JSON.
  void begin(std::uint64_t step, std::uint64_t applied, std::uint64_t skipped,
             std::optional<std::uint64_t> skipped_samples, const std::string& resumed_from,
             const std::string& environment);

  void step(const StepReport& report) override;
  void evaluation(std::uint64_t step, const EvalResult& result) override;
  void best(std::uint64_t step, const std::string& metric, double value, const std::string& path) override;
  void stopped_early(std::uint64_t step, const std::string& reason) override;
  void learning_rate_reduced(std::uint64_t step, double rate, const std::string& reason) override;
  void straggler(std::uint64_t step, const Straggler& straggler) override;
  /// Waits until the steps before stand in the metrics, for as long as the disk takes, or until it refuses them. Throws
  /// StorageError where the run directory was deleted or replaced: the checkpoint would be lost with it.
  void saving(std::uint64_t step) override;

  /// Records the end of a run that is done or was stopped as asked, and says on stderr what of its output is not
  /// written. Throws StorageError where the run directory was deleted or replaced.
  Summary end(const RunEnd& end, const std::string& weights_digest, const std::optional<GpuSummary>& gpu);
  /// Records a failure as far as that is possible. Never throws.
  void fail(const RunEnd& end) noexcept;

 private:
  /// Throws StorageError where the files are no longer this run's.
  void require_in_place(std::chrono::milliseconds patience);
  /// summary.json, or a warning why not.
  void write(const RunEnd& end, std::chrono::milliseconds patience);
  /// The end's event, and a word on what is not written. Waits for the end of a command that is told of events.
  void close(const RunEnd& end, std::chrono::milliseconds patience);

  TrainOptions options_;
  RunLock lock_;
  OutputWriter output_;
  std::optional<EventCommand> listener_;
  std::optional<Metrics> metrics_;  ///< once the run has begun
  bool names_are_durable_ = false;  ///< those of the files that it writes
  Summary summary_;
  double samples_ = 0.0;
  std::vector<float> step_ms_;
  std::vector<float> wait_data_ms_;
  std::vector<float> queue_depth_;
};

}  // namespace lockstep::train
