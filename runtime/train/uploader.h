// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "runtime/data/batch.h"
#include "runtime/tensor/stream.h"

namespace lockstep::train {

/// Brings batches to the device while it computes: through page-locked memory, so that neither side waits for the
/// other. On the CPU a batch is where it is needed.
class Uploader {
 public:
  explicit Uploader(Device device) : device_(device) {}

  /// The batch with its tensors on the device; appended to the device's current stream.
  data::Batch upload(const data::Batch& batch);

 private:
  /// Staging memory and the copies that read it.
  struct Slot {
    Storage memory;
    Event copied;
  };
  Tensor stage(Slot& slot, std::size_t offset, const Tensor& from) const;

  Device device_;
  std::array<Slot, 3> slots_;  ///< one being copied, one waiting, one being filled
  std::size_t next_ = 0;
};

}  // namespace lockstep::train
