// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "comm/group/world.h"
#include "runtime/step/step_observer.h"
#include "runtime/tensor/device.h"
#include "runtime/train/record/train_options.h"

namespace lockstep::train {

/// Reads "FROM:TO". Throws UsageError for other text, where FROM < 1 or TO < FROM, and for more than 100 steps.
TracedSteps traced_steps(const std::string& text);

/// Writes all that happens on all ranks in some steps of a run as one file in the format of Chrome's trace viewer and
/// of Perfetto: a process a rank, a row a thread. Operations, phases, collectives, waits for data and for other ranks,
/// checkpoints. The clocks of the ranks are set to that of rank 0 by exchanges of least round trip before and behind
/// the steps; the file's metadata says how far they may be off.
class StepTrace final : public step::StepObserver {
 public:
  /// Rank 0 writes `file` behind the last one of `steps`.
  StepTrace(comm::World& world, TracedSteps steps, std::filesystem::path file, Device device);
  ~StepTrace() override;
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;

  /// Writes what there is by now, where the run ends within the steps. A collective.
  void finish();

  bool needs_phases(std::uint64_t step) const override;
  void step_begins(std::uint64_t step) override;
  void phase_begins(step::Phase phase, std::uint64_t step, std::uint32_t micro_batch) override;
  void step_ends(std::uint64_t step) override;

 private:
  struct Recording;

  comm::World& world_;
  TracedSteps steps_;
  std::filesystem::path file_;
  Device device_;
  std::unique_ptr<Recording> recording_;  ///< of steps that are at work
};

}  // namespace lockstep::train
