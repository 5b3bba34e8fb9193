// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace lockstep {

/// A process-wide cache of 64-byte aligned blocks in size classes. The system's allocator returns large blocks to the
/// kernel at once and each step would fault every page in again; this one keeps them. Thread-safe.
class CpuAllocator {
 public:
  static CpuAllocator& instance();

  /// Throws MemoryError that names the bytes asked for, those free, the bytes held, and for what.
  void* allocate(std::size_t bytes);
  void deallocate(void* data, std::size_t bytes) noexcept;
  /// Gives the blocks that nothing holds back to the system: after work that a step does not repeat, such as loading.
  void release_cached();
  /// Bytes taken from the system, cached blocks included.
  std::size_t reserved() const;

 private:
  CpuAllocator();
  struct State;
  State* state_;  // never destroyed: static tensors may outlive every other static object
};

}  // namespace lockstep
