// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/tensor/device.h"
#include "runtime/tensor/storage.h"

namespace lockstep::data {

/// Steps whose batches a GPU may still copy while the next one's are put together: a loader has memory for them, and a
/// step::Uploader has no more on their way.
inline constexpr std::int64_t kStepsOnTheWay = 2;

/// Host memory that a known number of batches take turns in. For a GPU it is page-locked: the device copies from it
/// while the host goes on. Copies share the memory, which lives as long as one of them or of what take() gave.
/// Thread-safe.
class BatchSlots {
 public:
  /// `count` slots of at least `bytes` each, for batches that `device` works on. Takes them all at once; the system
  /// gives a CPU the pages of a slot when it is first written. Throws MemoryError that says how much they take.
  BatchSlots(std::int64_t count, std::size_t bytes, Device device);

  /// A free slot, until the last copy of the storage is dropped; empty where others hold them all. The thread that
  /// drops it gives it back in the order of its current stream: a slot is free once the device has done what that
  /// stream was given before, copies from the slot among it. Where another stream reads the slot, the owner keeps it
  /// until that is over. Waits for the device where it still reads all slots that nobody holds.
  Storage take() const;

  std::int64_t count() const;
  /// The bytes of one slot.
  std::size_t bytes() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace lockstep::data
