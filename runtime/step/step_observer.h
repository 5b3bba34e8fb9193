// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::step {

/// The phases of a step. Gradients are reduced while kBackward goes on.
enum class Phase { kForward, kBackward, kUpdate };

/// A listener of training steps. The thread that hands the work to the device calls it. A step that is launched as a
/// captured graph begins and ends, and has no phases.
class StepObserver {
 public:
  virtual ~StepObserver() = default;

  virtual void step_begins(std::uint64_t /*step*/) {}
  /// Whether the step must not be a captured graph, because the observer acts within it. Every rank has to say the
  /// same.
  virtual bool needs_phases(std::uint64_t /*step*/) const { return false; }
  /// `micro_batch` counts from 0 within the step; that of kUpdate is the last one.
  virtual void phase_begins(Phase /*phase*/, std::uint64_t /*step*/, std::uint32_t /*micro_batch*/) {}
  /// A parameter's gradient of a backward pass is complete on this rank and not reduced yet. `slot`: in nn::Arena.
  virtual void gradient_ready(std::size_t /*slot*/) {}
  virtual void step_ends(std::uint64_t /*step*/) {}
};

}  // namespace lockstep::step
