// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "runtime/tensor/memory.h"

namespace lockstep {

/// Counts what a device's tensors hold. Thread-safe, without a lock.
class MemoryCounters {
 public:
  /// Lives as long as the process.
  static MemoryCounters& of(Device device);
  /// The purpose under which the calling thread takes memory.
  static MemoryPurpose purpose();

  void take(MemoryPurpose purpose, std::size_t bytes) noexcept;
  void give_back(MemoryPurpose purpose, std::size_t bytes) noexcept;
  MemoryUse total() const { return total_.use(); }
  MemoryUse use(MemoryPurpose purpose) const { return purposes_[static_cast<std::size_t>(purpose)].use(); }
  void reset_peak() noexcept;

 private:
  class Counter {
   public:
    void take(std::size_t bytes) noexcept;
    void give_back(std::size_t bytes) noexcept { allocated_.fetch_sub(bytes, std::memory_order_relaxed); }
    MemoryUse use() const;
    void reset_peak() noexcept;

   private:
    std::atomic<std::size_t> allocated_{0};
    std::atomic<std::size_t> peak_{0};
  };

  Counter total_;
  std::array<Counter, kMemoryPurposes> purposes_;
};

}  // namespace lockstep
