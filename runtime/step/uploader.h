// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/step/step_inputs.h"
#include "runtime/tensor/stream.h"

namespace lockstep::step {

/// Brings a step's inputs to the device while it computes the step before: in one copy from page-locked memory on a
/// stream of its own, and from there, when their turn has come, to where every step finds them. On the CPU batches stay
/// where they are, and so do tensors that lie on the device.
class Uploader {
 public:
  explicit Uploader(Device device);

  /// The inputs of step `step`, on the device in the order of its current stream; until the next call. `stop`: whether
  /// this rank was told to stop.
  StepInputs upload(std::uint64_t step, std::vector<data::Batch> micro_batches, bool stop);

 private:
  /// Page-locked memory and the copy that reads it.
  struct Slot {
    Storage memory;
    Event copied;
  };
  /// Appends the copies of what a slot holds.
  void send(Slot& slot, std::size_t bytes);

  Device device_;
  std::array<Slot, 2> slots_;  ///< one being copied, one being filled
  std::size_t next_ = 0;
  Storage staging_;               ///< device memory that the next step's inputs are copied to
  Event taken_;                   ///< the staging memory is free again
  Storage inputs_;                ///< device memory that steps read
  std::optional<Stream> stream_;  ///< a GPU's, for uploads; last: its copies end before the memory that they use
};

}  // namespace lockstep::step
