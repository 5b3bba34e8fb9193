// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "amp/grad_scaler/types.h"
#include "runtime/optim/types.h"
#include "runtime/tensor/device_value.h"
#include "runtime/tensor/stream.h"

namespace lockstep::step {

/// The outcome of a step, for the host. A step writes it on its device.
struct StepOutcome {
  amp::Verdict verdict;
  amp::LossScaleState scale;      ///< after the step
  optim::ScheduleState schedule;  ///< after the step
  float loss = 0.0f;              ///< mean over the step's samples on all ranks
  float stop = 0.0f;              ///< how many ranks asked to stop
  float skipped_samples = 0.0f;   ///< of the step's batches on all ranks: Batch::skipped_samples
  float grad_norm = 0.0f;         ///< of the unscaled gradients, where clipping by norm measures it

  bool skipped() const { return verdict.found_inf != 0.0f; }
};
/// From `loss` on: one collective adds them up over ranks.
inline constexpr std::int64_t kSums = 3;
static_assert(offsetof(StepOutcome, stop) == offsetof(StepOutcome, loss) + sizeof(float));
static_assert(offsetof(StepOutcome, skipped_samples) == offsetof(StepOutcome, stop) + sizeof(float));

/// A step's outcome on its way from the device: copied when the device has it, read when somebody asks. On the CPU it
/// is there at once.
class Readback {
 public:
  explicit Readback(Device device);

  /// Appends the copy to the device's current stream. Forgets an outcome not yet taken.
  void request(const DeviceValue<StepOutcome>& outcome);
  /// Waits until it has arrived.
  StepOutcome take() const;

 private:
  Device device_;
  Storage slot_;  ///< host memory that the device writes
  Event arrived_;
};

}  // namespace lockstep::step
