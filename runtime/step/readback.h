// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/step/step_outcome.h"
#include "runtime/tensor/device_value.h"
#include "runtime/tensor/stream.h"

namespace lockstep::step {

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
