// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/tensor/gpu.h"
#include "runtime/tensor/tensor.h"
#include "tests/support/devices.h"

namespace lockstep {
namespace {

using lockstep::devices::kGpu;
using ::testing::HasSubstr;

/// What only the real allocator does: reuse, rounding, running out.
class GpuAllocator : public lockstep::devices::GpuTest {
 protected:
  static Storage take(std::size_t bytes) { return Storage::allocate(bytes, kGpu); }
  static constexpr std::size_t kMiB = std::size_t{1} << 20;
};

TEST_F(GpuAllocator, AlignsEveryBlock) {
  std::vector<Storage> held;
  for (const std::size_t bytes : {0u, 1u, 511u, 513u, 100'000u, 3'000'000u, 50'000'001u}) {
    held.push_back(take(bytes));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(held.back().data()) % 512, 0u) << bytes;
    EXPECT_EQ(held.back().bytes(), bytes);
    EXPECT_EQ(held.back().device(), kGpu);
  }
}

TEST_F(GpuAllocator, GivesAFreedBlockToTheNextAllocationOfItsStream) {
  for (const std::size_t bytes : {std::size_t{1000}, 5 * kMiB, 64 * kMiB}) {
    const void* first = take(bytes).data();
    EXPECT_EQ(take(bytes).data(), first) << bytes;
  }
}

TEST_F(GpuAllocator, KeepsTheMemoryOfStreamsApart) {
  const void* first = take(1000).data();
  const Stream side = Stream::create(kGpu, "side");
  const gpu::ScopedStream scope(side);
  EXPECT_NE(take(1000).data(), first) << "whose stream may not have finished with it";
}

TEST_F(GpuAllocator, CountsWhatIsHandedOutAndWhatItHolds) {
  const MemoryStatistics before = memory_statistics(kGpu);
  {
    const Storage storage = take(10 * kMiB + 1);
    const MemoryStatistics during = memory_statistics(kGpu);
    EXPECT_GE(during.allocated, before.allocated + 10 * kMiB + 1);
    EXPECT_GE(during.reserved, during.allocated);
    EXPECT_GE(during.peak, during.allocated);
  }
  const MemoryStatistics after = memory_statistics(kGpu);
  EXPECT_EQ(after.allocated, before.allocated);
  EXPECT_GE(after.reserved, before.reserved) << "cached";
  gpu::release_cached(kGpu);
  EXPECT_LE(memory_statistics(kGpu).reserved, before.reserved);
}

TEST_F(GpuAllocator, CutsOneSegmentIntoManyBlocks) {
  gpu::release_cached(kGpu);
  const std::size_t before = memory_statistics(kGpu).reserved;
  std::vector<Storage> held;
  for (int i = 0; i < 1000; ++i) held.push_back(take(512));
  EXPECT_LE(memory_statistics(kGpu).reserved - before, 2 * kMiB);
  held.clear();
  // Neighbours were joined again: a block larger than each of them fits.
  held.push_back(take(kMiB));
  EXPECT_LE(memory_statistics(kGpu).reserved - before, 2 * kMiB);
}

TEST_F(GpuAllocator, SaysWhoHoldsTheMemoryWhenItRunsOut) {
  const std::size_t total = gpu::describe(kGpu).total_memory;
  const MemoryScope scope(MemoryPurpose::kOptimizerState);
  const Storage held = take(8 * kMiB);
  for (const std::size_t impossible : {2 * total, std::size_t{1} << 62, ~std::size_t{0}}) {
    try {
      take(impossible);
      FAIL() << "no error";
    } catch (const MemoryError& error) {
      EXPECT_THAT(error.what(), HasSubstr("cannot allocate " + std::to_string(impossible) + " bytes on cuda:0"));
      EXPECT_THAT(error.what(), HasSubstr("of " + std::to_string(total / kMiB) + " MiB "));
      EXPECT_THAT(error.what(), HasSubstr("optimizer state"));
    }
  }
  // And goes on, with memory that works.
  EXPECT_EQ(Tensor::zeros({1000}, DType::kFloat32, kGpu).item(999), 0);
}

TEST_F(GpuAllocator, TellsWhoHoldsMemoryByItsPurpose) {
  const std::size_t impossible = std::size_t{1} << 62;
  const auto users = [&]() -> std::string {
    try {
      take(impossible);
    } catch (const MemoryError& error) {
      return error.what();
    }
    return "";
  };
  const MemoryScope outer(MemoryPurpose::kActivations);
  const Storage first = take(kMiB);
  Storage second, third;
  {
    const MemoryScope inner(MemoryPurpose::kInputs);
    second = take(2 * kMiB);
    std::thread([&] { third = take(kMiB); }).join();
  }
  EXPECT_THAT(users(), ::testing::AllOf(HasSubstr("activations"), HasSubstr("inputs"), HasSubstr("tensors")));
  second = {};
  EXPECT_THAT(users(), ::testing::Not(HasSubstr("inputs")));
}

TEST_F(GpuAllocator, ServesThreadsAtOnce) {
  const std::size_t before = memory_statistics(kGpu).allocated;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        const auto n = static_cast<std::int64_t>((i * 37 + t * 11) % 5000 + 1);
        const Tensor x = Tensor::from(std::vector<std::int32_t>(static_cast<std::size_t>(n), t), {n}).to(kGpu);
        ASSERT_EQ(x.item(n - 1), t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory_statistics(kGpu).allocated, before);
}

TEST_F(GpuAllocator, PinnedMemoryIsTheCpus) {
  const Storage pinned = gpu::allocate_pinned(1000);
  EXPECT_EQ(pinned.device(), kCpu);
  EXPECT_EQ(pinned.bytes(), 1000u);
  EXPECT_NE(gpu::allocate_pinned(0).data(), nullptr);
}

}  // namespace
}  // namespace lockstep
