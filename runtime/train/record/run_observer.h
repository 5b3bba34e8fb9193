// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/train/record/eval_result.h"
#include "runtime/train/record/step_report.h"
#include "runtime/train/record/stragglers.h"

namespace lockstep::train {

/// A listener of a run, such as its record or the terminal, or one of the program's own. saving(), saved() and best()
/// tell of files, which rank 0 writes.
class RunObserver {
 public:
  virtual ~RunObserver() = default;

  virtual void step(const StepReport& /*report*/) {}
  virtual void evaluation(std::uint64_t /*step*/, const EvalResult& /*result*/) {}
  /// Before a checkpoint is written; may throw to forbid it. Called by a thread of its own, while no other call is
  /// made.
  virtual void saving(std::uint64_t /*step*/) {}
  virtual void saved(std::uint64_t /*step*/, const std::string& /*path*/, double /*seconds*/) {}
  /// The evaluation behind the step gave the best value of a metric so far; the weights were saved.
  virtual void best(std::uint64_t /*step*/, const std::string& /*metric*/, double /*value*/,
                    const std::string& /*path*/) {}
  /// The run ends before its steps are done.
  virtual void stopped_early(std::uint64_t /*step*/, const std::string& /*reason*/) {}
  /// Behind the evaluation of the step the learning rate was reduced: `rate` is that of the next step.
  virtual void learning_rate_reduced(std::uint64_t /*step*/, double /*rate*/, const std::string& /*reason*/) {}
  /// A rank that slows the others down was found behind the step, or does so no longer.
  virtual void straggler(std::uint64_t /*step*/, const Straggler& /*straggler*/) {}
  /// A remark for a person.
  virtual void note(const std::string& /*text*/) {}
};

/// Tells several in their order.
class RunObservers final : public RunObserver {
 public:
  explicit RunObservers(std::vector<RunObserver*> all) : all_(std::move(all)) {}

  void step(const StepReport& report) override {
    for (RunObserver* const each : all_) each->step(report);
  }
  void evaluation(std::uint64_t step, const EvalResult& result) override {
    for (RunObserver* const each : all_) each->evaluation(step, result);
  }
  void saving(std::uint64_t step) override {
    for (RunObserver* const each : all_) each->saving(step);
  }
  void saved(std::uint64_t step, const std::string& path, double seconds) override {
    for (RunObserver* const each : all_) each->saved(step, path, seconds);
  }
  void best(std::uint64_t step, const std::string& metric, double value, const std::string& path) override {
    for (RunObserver* const each : all_) each->best(step, metric, value, path);
  }
  void stopped_early(std::uint64_t step, const std::string& reason) override {
    for (RunObserver* const each : all_) each->stopped_early(step, reason);
  }
  void learning_rate_reduced(std::uint64_t step, double rate, const std::string& reason) override {
    for (RunObserver* const each : all_) each->learning_rate_reduced(step, rate, reason);
  }
  void straggler(std::uint64_t step, const Straggler& straggler) override {
    for (RunObserver* const each : all_) each->straggler(step, straggler);
  }
  void note(const std::string& text) override {
    for (RunObserver* const each : all_) each->note(text);
  }

 private:
  std::vector<RunObserver*> all_;
};

}  // namespace lockstep::train
