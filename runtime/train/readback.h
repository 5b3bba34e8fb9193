// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/backend.h"
#include "runtime/tensor/device_value.h"

namespace lockstep::train {

/// What the host wants to know of a step.
struct StepOutcome {
  kernels::StepVerdict verdict;
  kernels::LossScaleState scale;    ///< after the step
  kernels::ScheduleState schedule;  ///< after the step
  float loss = 0.0f;                ///< mean over the global batch
  float stop = 0.0f;                ///< how many ranks were told to stop
};

/// A step's outcome on its way from the device: copied when the device has it, read when somebody asks. On the CPU it
/// is there at once.
class Readback {
 public:
  explicit Readback(Device device);

  /// Appends the copies to the device's current stream. loss_and_stop: float32 [2]. Forgets an outcome not yet taken.
  void request(const DeviceValue<kernels::StepVerdict>& verdict, const DeviceValue<kernels::LossScaleState>& scale,
               const DeviceValue<kernels::ScheduleState>& schedule, const Tensor& loss_and_stop);
  /// Waits until it has arrived.
  StepOutcome take() const;

 private:
  Device device_;
  Storage slot_;  ///< host memory that the device writes
  Event arrived_;
};

}  // namespace lockstep::train
