// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "comm/group/communicator.h"
#include "runtime/step/step_outcome.h"
#include "runtime/train/gpu_use.h"
#include "runtime/train/job_step.h"
#include "runtime/train/network.h"
#include "runtime/train/record/step_report.h"
#include "runtime/train/training_data.h"

namespace lockstep::train {

/// The steps that the device is working on: hands them out at their learning rates, reads what came of them, and takes
/// the time.
class StepsInFlight {
 public:
  StepsInFlight(Network& network, JobStep& step, comm::Communicator& communicator);

  /// A GPU gets its next step before the one that it works on is read; every rank reads as many steps late, so that all
  /// stop behind the same one.
  std::size_t ahead() const { return network_.device() == kCpu ? 0 : 1; }
  std::size_t size() const { return steps_.size(); }

  /// Hands the device a whole step; waits for nothing that the device does. `stop`: this rank's wish to stop behind it,
  /// asked for once the data are there.
  void launch(std::uint64_t number, TrainingData& data, const std::function<bool()>& stop);

  /// The rates of all later steps are those after so many reductions. While no step is in flight. Whether they change.
  bool set_reductions(std::int64_t reductions);

  struct Finished {
    StepReport report;
    step::StepOutcome outcome;
    std::vector<data::UnreadSample> unread;  ///< of this rank
  };
  /// Waits for the oldest step.
  Finished finish();
  /// The number of the oldest step.
  std::uint64_t oldest() const { return steps_.front().report.step; }

  /// Nothing on the CPU.
  std::optional<GpuSummary> gpu_summary() const;

 private:
  struct InFlight {
    StepReport report;  ///< what the host knows of it
    step::Readback* readback = nullptr;
    Launch launch;
    std::vector<data::UnreadSample> unread;
    std::optional<std::chrono::nanoseconds> waited;  ///< for other ranks, before the step
    std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  };
  void hand_out_rates();
  /// Waits for the device.
  step::StepOutcome outcome_of(step::Readback& readback) const;
  void fill(StepReport& report, const step::StepOutcome& outcome) const;

  Network& network_;
  JobStep& step_;
  comm::Communicator& communicator_;
  std::array<step::Readback, 2> readbacks_;  ///< of the step that runs and the one behind it
  std::deque<InFlight> steps_;
  std::chrono::steady_clock::time_point last_end_;
  GpuUse gpu_use_;
};

}  // namespace lockstep::train
