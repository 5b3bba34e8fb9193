// SPDX-License-Identifier: Apache-2.0
// What a group is besides its collectives: its channels, memory, parts, words and description.
#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <vector>

#include "comm/group/device_waits.h"
#include "comm/group/launch_environment.h"
#include "comm/group/transport_choice.h"
#include "runtime/base/error.h"
#include "tests/comm/group/rank_groups.h"

namespace lockstep::comm {

INSTANTIATE_TEST_SUITE_P(Paths, Collectives,
                         testing::Values(Path::kWindow, Path::kPrivate, Path::kTransport, Path::kShortage,
                                         Path::kNoRoom, Path::kNodes),
                         [](const auto& path) { return name_of(path.param); });
INSTANTIATE_TEST_SUITE_P(Nccl, Collectives, testing::Values(Path::kNccl),
                         [](const auto& path) { return name_of(path.param); });

namespace {

TEST_P(Collectives, TextOfAnyLength) {
  std::vector<std::string> expected;
  for (int r = 0; r < size(); ++r) expected.push_back(std::string(static_cast<std::size_t>(r) * 40000, 'a'));
  EXPECT_EQ(group().all_gather_text(expected[static_cast<std::size_t>(rank())]), expected);
  EXPECT_EQ(group().broadcast_text("from " + std::to_string(rank()), size() - 1), "from " + std::to_string(size() - 1));
  EXPECT_EQ(group().broadcast_text("", 0), "");
}

TEST_P(Collectives, TwoChannelsRunAtOnceFromTwoThreads) {
  const std::shared_ptr<Communicator> gradients = group().duplicate("gradients");
  const Stream worker = Stream::create(device_, "gradients");
  const Tensor large = buffer(50000, DType::kFloat32);
  const Tensor small = zeros({16}, DType::kFloat32);
  for (int step = 1; step <= 30; ++step) {
    fill(large, [&](std::int64_t) { return step; });
    worker.wait(stream().record());
    for (std::int64_t begin = 0; begin < large.numel(); begin += 12500) {
      gradients->all_reduce(large.rows(begin, begin + 12500), ReduceOp::kAverage, 1.0f, worker);
    }
    for (int i = 0; i < 10; ++i) {
      fill(small, [&](std::int64_t) { return step + i; });
      group().all_reduce(small, ReduceOp::kSum, 1.0f, stream());
      expect_all(small, (step + i) * size());
    }
    worker.synchronize();
    ASSERT_NEAR(large.item(step), step, 1e-5);
    ASSERT_NEAR(large.item(49999), step, 1e-5);
  }
}

TEST_P(Collectives, MemoryIsGivenBackForLaterAllocations) {
  for (int i = 0; i < 8; ++i) {
    const Tensor tensor = Tensor::view(group().allocate(40000), 0, {10000}, DType::kFloat32);
    expect_all(tensor, 0);
    fill(tensor, [](std::int64_t) { return 1.0; });
    group().all_reduce(tensor, ReduceOp::kSum, 1.0f, stream());
    ASSERT_EQ(tensor.item(9999), size());
  }
}

TEST_P(Collectives, WatchALaunch) {
  bool launched = false;
  launch_watched(group(), stream(), 7, [&] { launched = true; });
  EXPECT_TRUE(launched);
  stream().synchronize();
}

TEST_P(Collectives, DescribesHowTheRanksReachEachOther) {
  EXPECT_EQ(world_->local_size(), size());
  EXPECT_EQ(world_->local_rank(), rank());
  if (is_nccl()) {
    EXPECT_THAT(group().description(), testing::StartsWith("nccl over "));
  } else if (size() == 1) {
    EXPECT_EQ(group().description(), "self");
  } else {
    const bool told = std::getenv(kTransportVariable) != nullptr && transport_between_hosts() == "tcp";
    const bool tcp = told || launch_environment().launcher == LaunchEnvironment::Launcher::kTorchrun;
    const std::string transport = tcp ? "tcp" : "mpi";
    EXPECT_EQ(world_->transport(), transport);
    if (GetParam() == Path::kWindow || GetParam() == Path::kPrivate) {
      EXPECT_EQ(group().description(), transport + ", shared memory");
    } else if (GetParam() == Path::kTransport || GetParam() == Path::kNoRoom) {
      EXPECT_EQ(group().description(), transport);
    }
  }
}

TEST_P(Collectives, SplitRanksReduceAmongThemselves) {
  // Odd and even ranks, in the opposite order.
  const int color = rank() % 2;
  const auto half = group().split(color, -rank());
  ASSERT_TRUE(half);
  std::vector<int> members;
  for (int r = size() - 1; r >= 0; --r) {
    if (r % 2 == color) members.push_back(r);
  }
  ASSERT_EQ(half->size(), static_cast<int>(members.size()));
  EXPECT_EQ(members[static_cast<std::size_t>(half->rank())], rank());
  const Tensor gathered = zeros({half->size()}, DType::kInt64);
  half->all_gather(Tensor::from<std::int64_t>({rank()}, {1}).to(device_), gathered, stream());
  expect_equal(gathered, [&](std::int64_t i) { return members[static_cast<std::size_t>(i)]; });

  double sum = 0;
  for (const int member : members) sum += member + 1;
  for (const std::int64_t count : {std::int64_t{3}, std::int64_t{20000}, std::int64_t{70001}}) {
    // Memory of the whole group, and memory of the half.
    for (const Tensor& tensor :
         {buffer(count, DType::kFloat32), Tensor::view(half->allocate(300000), 0, {count}, DType::kFloat32)}) {
      fill(tensor, [&](std::int64_t) { return rank() + 1; });
      half->all_reduce(tensor, ReduceOp::kSum, 1.0f, stream());
      expect_all(tensor, sum);
      // Windows of two halves are no common memory of the whole.
      fill(tensor, [](std::int64_t) { return 1; });
      group().all_reduce(tensor, ReduceOp::kSum, 1.0f, stream());
      expect_all(tensor, size());
    }
  }
  const Tensor root = zeros({5}, DType::kFloat32);
  fill(root, [&](std::int64_t) { return rank(); });
  half->broadcast(root, half->size() - 1, stream());
  expect_all(root, members.back());
  EXPECT_EQ(half->all_gather_text(std::to_string(rank())).front(), std::to_string(members.front()));
}

TEST_P(Collectives, ARankMayTakeNoPartInASplit) {
  const auto others = group().split(rank() == 0 ? -1 : 7, rank(), "all but one");
  EXPECT_EQ(others == nullptr, rank() == 0);
  if (others) {
    EXPECT_EQ(others->size(), size() - 1);
    EXPECT_EQ(others->rank(), rank() - 1);
    others->barrier(stream());
    const auto again = others->split(0, 0);
    EXPECT_EQ(again->rank(), others->rank());  // equal keys: as before
  }
  const Tensor one = zeros({1}, DType::kFloat32);
  group().all_reduce(one, ReduceOp::kSum, 1.0f, stream());
  stream().synchronize();
}

}  // namespace
}  // namespace lockstep::comm
