// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "runtime/job/job.h"
#include "runtime/step/step_clock.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/memory.h"

namespace lockstep::train {

/// The bytes that a process's tensors and workspaces hold on its device in a step.
struct StepMemory {
  struct Share {
    MemoryPurpose purpose;
    std::size_t bytes = 0;
  };

  std::size_t peak = 0;       ///< the most at once
  std::string operation;      ///< that ended next: "conv backward"; a part of the step where none was at work
  std::vector<Share> shares;  ///< the most of each purpose while it ran, the largest first; not all at the same instant
  std::array<std::size_t, step::kStepParts> parts{};  ///< the most in each part; 0 of those that are no phases
};

/// Takes note of the memory wherever a StepClock looks at its clock, in one step.
class MemoryWatch {
 public:
  /// Counts the device's peaks anew.
  explicit MemoryWatch(Device device);
  /// Told of all that ends, in its order.
  void add(const step::ClockedEvent& event);
  StepMemory result() const { return memory_; }

 private:
  Device device_;
  StepMemory memory_;
  std::size_t of_phase_ = 0;
};

/// A change of a job that may need less memory.
struct SmallerJob {
  std::string setting;  ///< "data.global_batch=32", as --set takes it
  job::Job job;
};
/// Half of the batch, where each of the `ranks` still gets a sample in each micro-batch, and checkpoints of the
/// activations, where the model has them and the job does not ask for them.
std::vector<SmallerJob> smaller_jobs(const job::Job& job, int ranks);

}  // namespace lockstep::train
