// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/storage.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "runtime/base/error.h"

// A sanitizer's allocator ends the process at an impossible size unless it is told to return null, as others do.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace lockstep {
namespace {

TEST(Storage, IsAlignedForVectorInstructions) {
  for (const std::size_t bytes : {1u, 63u, 65u, 1000u, 100'000u}) {
    const Storage storage = Storage::allocate(bytes, kCpu);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(storage.data()) % 64, 0u) << bytes;
    EXPECT_EQ(storage.bytes(), bytes);
  }
}

TEST(Storage, TheLastCopyReleasesTheBlock) {
  int released = 0;
  int value = 0;
  {
    const Storage outer(&value, sizeof value, kCpu, [&released] { ++released; });
    {
      const Storage inner = outer;
      EXPECT_EQ(inner.data(), &value);
    }
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST(Storage, WithoutABlockIsEmpty) {
  const Storage none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_EQ(none.bytes(), 0u);
}

TEST(Storage, AnImpossibleSizeIsAMemoryErrorThatNamesIt) {
  try {
    Storage::allocate(std::size_t{1} << 62, kCpu);
    FAIL() << "no error";
  } catch (const MemoryError& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(std::size_t{1} << 62)), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep
