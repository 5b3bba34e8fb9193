// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/tensor/cpu_allocator.h"
#include "runtime/tensor/gpu.h"
#include "runtime/tensor/memory_counters.h"

namespace lockstep {

namespace {

constexpr std::size_t kUsersToName = 5;
thread_local MemoryPurpose current = MemoryPurpose::kTensors;

}  // namespace

std::string_view name_of(MemoryPurpose purpose) {
  switch (purpose) {
    case MemoryPurpose::kTensors:
      return "tensors";
    case MemoryPurpose::kMasterWeights:
      return "master weights";
    case MemoryPurpose::kComputeCopies:
      return "compute copies";
    case MemoryPurpose::kGradients:
      return "gradients";
    case MemoryPurpose::kFloat32Gradients:
      return "float32 gradients";
    case MemoryPurpose::kOptimizerState:
      return "optimizer state";
    case MemoryPurpose::kActivations:
      return "activations";
    case MemoryPurpose::kActivationGradients:
      return "gradients of activations";
    case MemoryPurpose::kInputs:
      return "inputs";
    case MemoryPurpose::kWorkspaces:
      return "workspaces";
    case MemoryPurpose::kSegmentTables:
      return "segment tables";
  }
  throw UsageError("memory for a purpose without a name");
}

MemoryScope::MemoryScope(MemoryPurpose purpose) : outer_(std::exchange(current, purpose)) {}
MemoryScope::~MemoryScope() { current = outer_; }

void MemoryCounters::Counter::take(std::size_t bytes) noexcept {
  const std::size_t now = allocated_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::size_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < now && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

MemoryUse MemoryCounters::Counter::use() const {
  const std::size_t allocated = allocated_.load(std::memory_order_relaxed);
  return {allocated, std::max(allocated, peak_.load(std::memory_order_relaxed))};
}

void MemoryCounters::Counter::reset_peak() noexcept {
  peak_.store(allocated_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

MemoryCounters& MemoryCounters::of(Device device) {
  // Never destroyed: static tensors may outlive every other static object.
  static_assert(std::is_trivially_destructible_v<MemoryCounters>);
  static constinit MemoryCounters cpu;
  if (device == kCpu) return cpu;
  static std::mutex& mutex = *new std::mutex;
  static auto& others = *new std::map<int, MemoryCounters>;
  const std::lock_guard lock(mutex);
  return others[device.index];
}

MemoryPurpose MemoryCounters::purpose() { return current; }

void MemoryCounters::take(MemoryPurpose purpose, std::size_t bytes) noexcept {
  total_.take(bytes);
  purposes_[static_cast<std::size_t>(purpose)].take(bytes);
}

void MemoryCounters::give_back(MemoryPurpose purpose, std::size_t bytes) noexcept {
  total_.give_back(bytes);
  purposes_[static_cast<std::size_t>(purpose)].give_back(bytes);
}

void MemoryCounters::reset_peak() noexcept {
  total_.reset_peak();
  for (Counter& counter : purposes_) counter.reset_peak();
}

MemoryStatistics memory_statistics(Device device) {
  const std::size_t reserved =
      device.type == DeviceType::kCpu ? CpuAllocator::instance().reserved() : gpu::reserved_memory(device);
  return {MemoryCounters::of(device).total(), reserved};
}

MemoryUse memory_use(Device device, MemoryPurpose purpose) { return MemoryCounters::of(device).use(purpose); }

void reset_peak(Device device) { MemoryCounters::of(device).reset_peak(); }

std::string memory_users(Device device) {
  std::vector<std::pair<std::size_t, std::string_view>> users;
  for (std::size_t i = 0; i < kMemoryPurposes; ++i) {
    const auto purpose = static_cast<MemoryPurpose>(i);
    if (const std::size_t bytes = memory_use(device, purpose).allocated; bytes > 0) {
      users.emplace_back(bytes, name_of(purpose));
    }
  }
  std::ranges::sort(users, std::greater());
  std::string text;
  for (std::size_t i = 0; i < std::min(users.size(), kUsersToName); ++i) {
    text += fmt::format("{}{} {} MiB", i == 0 ? "" : ", ", users[i].second, users[i].first >> 20);
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace lockstep
