// SPDX-License-Identifier: Apache-2.0
// Work that rank 0 does for all. Run as 2 ranks, on an emulated GPU too.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "comm/group/world.h"
#include "runtime/base/error.h"
#include "runtime/step/replicated.h"
#include "runtime/tensor/device_value.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::step {
namespace {

class OnRankZero : public testing::Test {
 protected:
  comm::World world_ = comm::World::from_environment({.timeout = std::chrono::seconds(4)});
  comm::Communicator& group_ = *world_.communicator();
};

TEST_F(OnRankZero, RunsOnceAndForAllRanksBeforeAnyGoesOn) {
  int runs = 0;
  on_rank_zero(group_, [&] { ++runs; });
  EXPECT_EQ(runs, group_.rank() == 0 ? 1 : 0);
}

TEST_F(OnRankZero, AnErrorIsThrownByEveryRankAlike) {
  try {
    on_rank_zero(group_, [] { throw StorageError("no room\nat all", "make some:\ndelete something"); });
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kStorage);
    EXPECT_STREQ(error.what(), "no room\nat all");
    EXPECT_EQ(error.advice(), "make some:\ndelete something");
  }
}

TEST_F(OnRankZero, MayTakeLongerThanTheTimeout) {
  on_rank_zero(group_, [] { std::this_thread::sleep_for(std::chrono::seconds(6)); });
}

TEST_F(OnRankZero, WhatItAppendsToAGpuIsOrderedWithTheCallersWork) {
  if (gpu::device_count() == 0) GTEST_SKIP() << "there is no GPU";
  const Device device{DeviceType::kCuda, 0};
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const Storage memory = Storage::allocate(kBytes, device);
  const auto take_long = [&] {
    for (int i = 0; i < 8; ++i) gpu::zero(memory.data(), kBytes, Stream::current(device));
  };
  const DeviceValue<int> value(1, device);
  take_long();
  value.write(2);
  int seen = 2;
  on_rank_zero(group_, [&] {
    seen = value.read();
    take_long();
    value.write(3);
  });
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(value.read(), group_.rank() == 0 ? 3 : 2);
}

}  // namespace
}  // namespace lockstep::step
