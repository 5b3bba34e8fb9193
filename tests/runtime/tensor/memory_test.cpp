// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/memory.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/tensor/cpu_allocator.h"
#include "runtime/tensor/tensor.h"
#include "tests/support/devices.h"

namespace lockstep {
namespace {

using lockstep::devices::kGpu;

constexpr std::size_t kBytes = (std::size_t{3} << 20) + 5;

/// Each test leaves the counters as it found them, whatever other tests of the process hold.
class Memory : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (const auto reason = devices::why_skipped(device())) GTEST_SKIP() << *reason;
    reset_peak(device());
    before_ = memory_statistics(device());
  }
  static Device device() { return GetParam() ? kGpu : kCpu; }
  std::size_t allocated() const { return memory_statistics(device()).allocated - before_.allocated; }
  std::size_t peak() const { return memory_statistics(device()).peak - before_.allocated; }

  MemoryStatistics before_;
};

TEST(CpuMemory, WhatIsCachedGoesBackToTheSystemOnRequest) {
  CpuAllocator& allocator = CpuAllocator::instance();
  allocator.release_cached();
  const std::size_t before = allocator.reserved();
  void* const held = allocator.allocate(kBytes);
  allocator.deallocate(allocator.allocate(kBytes), kBytes);
  allocator.release_cached();
  EXPECT_GE(allocator.reserved(), before + kBytes);
  EXPECT_LT(allocator.reserved(), before + 2 * kBytes);
  allocator.deallocate(held, kBytes);
  allocator.release_cached();
  EXPECT_EQ(allocator.reserved(), before);
}

TEST_P(Memory, IsCountedToTheByteThatWasAskedFor) {
  {
    const Storage storage = Storage::allocate(kBytes, device());
    EXPECT_EQ(allocated(), kBytes);
    EXPECT_GE(memory_statistics(device()).reserved, memory_statistics(device()).allocated);
    const Storage copy = storage;
    EXPECT_EQ(allocated(), kBytes) << "copies share the block";
  }
  EXPECT_EQ(allocated(), 0u);
  EXPECT_EQ(peak(), kBytes);
}

TEST_P(Memory, PeakIsTheMostAtOnceAndStartsAnewWithAReset) {
  Storage held = Storage::allocate(kBytes, device());
  { const Storage more = Storage::allocate(2 * kBytes, device()); }
  { const Storage less = Storage::allocate(kBytes, device()); }
  EXPECT_EQ(peak(), 3 * kBytes);
  reset_peak(device());
  EXPECT_EQ(peak(), kBytes) << "what is held still";
  { const Storage less = Storage::allocate(7, device()); }
  EXPECT_EQ(peak(), kBytes + 7);
  held = {};
  EXPECT_EQ(peak(), kBytes + 7);
}

TEST_P(Memory, IsCountedUnderThePurposeOfTheThreadThatTookIt) {
  const auto use = [&](MemoryPurpose purpose) { return memory_use(device(), purpose); };
  const std::size_t gradients = use(MemoryPurpose::kGradients).allocated;
  const std::size_t inputs = use(MemoryPurpose::kInputs).allocated;
  const std::size_t tensors = use(MemoryPurpose::kTensors).allocated;
  Storage outer, inner, elsewhere, after;
  {
    const MemoryScope scope(MemoryPurpose::kGradients);
    outer = Storage::allocate(kBytes, device());
    {
      const MemoryScope nested(MemoryPurpose::kInputs);
      inner = Storage::allocate(10, device());
      std::thread([&] { elsewhere = Storage::allocate(20, device()); }).join();
    }
    after = Storage::allocate(30, device());
  }
  EXPECT_EQ(use(MemoryPurpose::kGradients).allocated, gradients + kBytes + 30);
  EXPECT_EQ(use(MemoryPurpose::kInputs).allocated, inputs + 10);
  EXPECT_EQ(use(MemoryPurpose::kTensors).allocated, tensors + 20);
  EXPECT_EQ(allocated(), kBytes + 60);
  EXPECT_NE(memory_users(device()).find("gradients 3 MiB"), std::string::npos) << memory_users(device());
  // Given back under the purpose for which it was taken, wherever that happens.
  const MemoryScope other(MemoryPurpose::kWorkspaces);
  outer = after = {};
  EXPECT_EQ(use(MemoryPurpose::kGradients).allocated, gradients);
  EXPECT_GE(use(MemoryPurpose::kGradients).peak, gradients + kBytes + 30);
}

TEST_P(Memory, OfOthersIsCountedWhereItWasTakenForTensors) {
  std::vector<char> memory(64);
  const Storage plain(memory.data(), memory.size(), device(), nullptr);
  EXPECT_EQ(allocated(), 0u);
  {
    const Storage counted = Storage::counted(memory.data(), memory.size(), device(), nullptr);
    EXPECT_EQ(allocated(), memory.size());
  }
  EXPECT_EQ(allocated(), 0u);
}

TEST_P(Memory, ThreadsLoseNoByte) {
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      const MemoryScope scope(MemoryPurpose::kActivations);
      for (std::size_t i = 0; i < 500; ++i) Storage::allocate(i * 37 + t, device());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allocated(), 0u);
  EXPECT_GE(peak(), std::size_t{499 * 37});
}

INSTANTIATE_TEST_SUITE_P(Cpu, Memory, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Gpu, Memory, ::testing::Values(true));

TEST(MemoryPurpose, EachHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kMemoryPurposes; ++i) names.insert(name_of(static_cast<MemoryPurpose>(i)));
  EXPECT_EQ(names.size(), kMemoryPurposes);
}

}  // namespace
}  // namespace lockstep
