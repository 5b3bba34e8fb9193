// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "runtime/train/record/progress_line.h"
#include "runtime/train/record/run_end.h"
#include "runtime/train/record/run_facts.h"
#include "runtime/train/record/run_observer.h"
#include "runtime/train/record/summary.h"
#include "runtime/train/record/terminal.h"
#include "runtime/train/record/train_options.h"

namespace lockstep::train {

/// The lines that a person sees of a run: a header, a live line with the progress on a terminal or a line now and then
/// elsewhere, a line for each evaluation, save and skip, and the result. Rank 0 only.
class Progress final : public RunObserver {
 public:
  /// Quiet: the result alone. With TrainOutput::json stdout belongs to the metrics, and words go to stderr.
  Progress(const TrainOutput& output, std::uint32_t log_every);
  /// Whether the run has a line that is written anew with each step.
  static bool is_live(const TrainOutput& output);

  void header(const RunFacts& facts);
  void step(const StepReport& report) override;
  void evaluation(std::uint64_t step, const EvalResult& result) override;
  void saved(std::uint64_t step, const std::string& path, double seconds) override;
  void best(std::uint64_t step, const std::string& metric, double value, const std::string& path) override;
  void stopped_early(std::uint64_t step, const std::string& reason) override;
  void learning_rate_reduced(std::uint64_t step, double rate, const std::string& reason) override;
  void straggler(std::uint64_t step, const Straggler& straggler) override;
  void note(const std::string& text) override;
  /// Prints the end of a run that ended as it should, "done" or "preempted". `next`: what to do
  /// now, the first thing first; not empty.
  void result(const RunEnd& end, const Summary& summary, const std::vector<std::string>& next);

 private:
  using Clock = std::chrono::steady_clock;

  void draw(const StepReport& report, Clock::time_point now);
  void print_step(const StepReport& report);
  void tell_of_skip(const StepReport& report);
  std::string colored(const char* color, const std::string& text) const;

  bool quiet_;
  bool color_;
  std::uint64_t log_every_;
  Terminal terminal_;
  RunFacts facts_;
  std::string saved_path_;

  std::uint64_t first_step_ = 0;  ///< of this process
  Clock::time_point first_end_;   ///< the first step's
  Clock::time_point last_drawn_;
  std::int64_t samples_ = 0;  ///< since then
  double seconds_ = 0.0;      ///< of those
  bool scale_changes_ = false;
};

}  // namespace lockstep::train
