// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/cpu_allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/tensor/memory_room.h"

namespace lockstep {

namespace {

constexpr std::size_t kAlignment = 64;

// A sanitizer finds a use after free only in memory that really was given back.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCache = false;
#else
constexpr bool kCache = true;
#endif

/// Four classes to each power of two: at most a quarter of a block is unused.
std::size_t size_class(std::size_t bytes) {
  if (bytes <= kAlignment) return kAlignment;
  const std::size_t step = std::max(std::bit_floor(bytes) / 4, kAlignment);
  if (bytes > static_cast<std::size_t>(-1) - step) return bytes;
  return (bytes + step - 1) & ~(step - 1);
}

/// A number for each size class, below kClasses.
std::size_t class_number(std::size_t size) {
  const auto width = static_cast<std::size_t>(std::bit_width(size));
  return 4 * width + ((size >> (width - 3)) & 3);
}
constexpr std::size_t kClasses = 4 * (8 * sizeof(std::size_t) + 1);

}  // namespace

struct CpuAllocator::State {
  /// A block that is free now.
  struct Cached {
    void* data;
    std::size_t size;
  };

  mutable std::mutex mutex;
  std::array<std::vector<Cached>, kClasses> free;
  std::size_t reserved = 0;

  /// A block that is free, or a new one; null where there is no memory.
  void* take(std::size_t size) {
    const std::lock_guard lock(mutex);
    std::vector<Cached>& cached = free[class_number(size)];
    if (!cached.empty()) {
      void* const data = cached.back().data;
      cached.pop_back();
      return data;
    }
    void* const data = std::aligned_alloc(kAlignment, size);
    if (data != nullptr) reserved += size;
    return data;
  }
  /// Keeps a block for the next that asks for its size. Returns whether there was the memory to note it down.
  bool keep(void* data, std::size_t size) noexcept {
    try {
      free[class_number(size)].push_back({data, size});
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
};

CpuAllocator& CpuAllocator::instance() {
  static CpuAllocator allocator;
  return allocator;
}

CpuAllocator::CpuAllocator() : state_(new State) {}

void* CpuAllocator::allocate(std::size_t bytes) {
  const std::size_t size = size_class(bytes);
  void* data = state_->take(size);
  if (data == nullptr) {
    // The cached blocks of other sizes may make room.
    release_cached();
    data = state_->take(size);
  }
  if (data != nullptr) return data;
  throw MemoryError(fmt::format("cannot allocate {} bytes on the CPU: {}", bytes, memory_facts()),
                    "Use a smaller data.global_batch, more ranks, or train.accumulate.");
}

void CpuAllocator::deallocate(void* data, std::size_t bytes) noexcept {
  const std::size_t size = size_class(bytes);
  const std::lock_guard lock(state_->mutex);
  if (kCache && state_->keep(data, size)) return;
  state_->reserved -= size;
  std::free(data);
}

void CpuAllocator::release_cached() {
  const std::lock_guard lock(state_->mutex);
  for (std::vector<State::Cached>& blocks : state_->free) {
    for (const State::Cached& block : blocks) {
      state_->reserved -= block.size;
      std::free(block.data);
    }
    blocks.clear();
  }
}

std::size_t CpuAllocator::reserved() const {
  const std::lock_guard lock(state_->mutex);
  return state_->reserved;
}

}  // namespace lockstep
