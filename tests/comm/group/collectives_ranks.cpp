// SPDX-License-Identifier: Apache-2.0
// Every collective, over each way in which ranks can reach each other's memory. Run as 1 to 4 ranks.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "comm/group/communicator.h"
#include "runtime/kernels/cpu/rank_reduce.h"
#include "runtime/tensor/error.h"

namespace lockstep::comm {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Eq;

enum class Path { kWindow, kPrivate, kMpi, kShortage, kNoRoom, kNodes };

std::string name_of(Path path) {
  switch (path) {
    case Path::kWindow:
      return "Window";
    case Path::kPrivate:
      return "PrivateBuffers";
    case Path::kMpi:
      return "Mpi";
    case Path::kShortage:
      return "TooLittleSharedMemory";
    case Path::kNoRoom:
      return "NoSharedMemory";
    case Path::kNodes:
      return "PretendedNodes";
  }
  return "";
}

class Collectives : public testing::TestWithParam<Path> {
 protected:
  void SetUp() override {
    // Read when the world is made, so that no two tests of this process see each other's.
    if (GetParam() == Path::kShortage) setenv("LOCKSTEP_SHARED_MEMORY_BYTES", "1500000", 1);
    if (GetParam() == Path::kNoRoom) setenv("LOCKSTEP_SHARED_MEMORY_BYTES", "0", 1);
    if (GetParam() == Path::kNodes) setenv("LOCKSTEP_RANKS_PER_NODE", "2", 1);
    world_.emplace(
        World::from_environment({.timeout = std::chrono::seconds(20), .shared_memory = GetParam() != Path::kMpi}));
    unsetenv("LOCKSTEP_RANKS_PER_NODE");
  }
  void TearDown() override {
    arena_ = {};
    world_.reset();
    unsetenv("LOCKSTEP_SHARED_MEMORY_BYTES");
  }

  Communicator& group() { return *world_->communicator(); }
  int rank() { return world_->rank(); }
  int size() { return world_->size(); }

  /// In a shared window where the path has one. Every call gives the same memory.
  Tensor buffer(std::int64_t count, DType dtype) {
    if (!arena_) {
      arena_ = GetParam() == Path::kPrivate ? Storage::allocate(kArenaBytes, kCpu) : group().allocate(kArenaBytes);
    }
    return Tensor::view(arena_, 0, {count}, dtype);
  }

  static constexpr std::size_t kArenaBytes = 1 << 20;
  std::optional<World> world_;
  Storage arena_;
  Stream stream_ = Stream::calling_thread();
};

INSTANTIATE_TEST_SUITE_P(Paths, Collectives,
                         testing::Values(Path::kWindow, Path::kPrivate, Path::kMpi, Path::kShortage, Path::kNoRoom,
                                         Path::kNodes),
                         [](const auto& path) { return name_of(path.param); });

void set(const Tensor& tensor, std::int64_t at, double value) {
  const auto i = static_cast<std::size_t>(at);
  switch (tensor.dtype()) {
    case DType::kFloat32:
      tensor.as<float>()[i] = static_cast<float>(value);
      break;
    case DType::kFloat16:
      tensor.as<Half>()[i] = Half(static_cast<float>(value));
      break;
    case DType::kBFloat16:
      tensor.as<BFloat16>()[i] = BFloat16(static_cast<float>(value));
      break;
    case DType::kFloat64:
      tensor.as<double>()[i] = value;
      break;
    case DType::kInt64:
      tensor.as<std::int64_t>()[i] = static_cast<std::int64_t>(value);
      break;
    case DType::kInt32:
      tensor.as<std::int32_t>()[i] = static_cast<std::int32_t>(value);
      break;
    case DType::kUInt8:
      tensor.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(value);
      break;
    case DType::kBool:
      tensor.as<bool>()[i] = value != 0;
      break;
  }
}

template <class F>
void fill(const Tensor& tensor, F value) {
  for (std::int64_t i = 0; i < tensor.numel(); ++i) set(tensor, i, value(i));
}

constexpr DType kReducible[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16,
                                DType::kFloat64, DType::kInt64,   DType::kInt32};
// Nothing, one, an odd few, a cache line either side, what is staged, in place, and beyond the staging area.
constexpr std::int64_t kCounts[] = {0, 1, 3, 31, 33, 1000, 9001, 16384, 16385, 70001};

/// Multiples of 12, so that even an average over up to 4 ranks is a small integer, exact in every dtype.
double contribution(int rank, std::int64_t i) { return 12.0 * static_cast<double>((i * 5 + rank * 3) % 9 - 4); }

TEST_P(Collectives, AllReduceIsExactForEveryDtypeAndCount) {
  for (const DType dtype : kReducible) {
    for (const std::int64_t count : kCounts) {
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kAverage}) {
        if (op == ReduceOp::kAverage && !is_floating(dtype)) continue;
        const Tensor tensor = buffer(count, dtype);
        fill(tensor, [&](std::int64_t i) { return contribution(rank(), i); });
        group().all_reduce(tensor, op, 1.0f, stream_);
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < count; ++i) {
          double sum = 0;
          double max = -1000;
          for (int r = 0; r < size(); ++r) {
            sum += contribution(r, i);
            max = std::max(max, contribution(r, i));
          }
          const double expected = op == ReduceOp::kSum ? sum : op == ReduceOp::kMax ? max : sum / size();
          // A third has no exact float32, so an average in the wide dtypes is off by a rounding.
          if (std::abs(tensor.item(i) - expected) > (op == ReduceOp::kAverage ? 1e-5 : 0.0)) ++wrong;
        }
        EXPECT_EQ(wrong, 0) << count << " " << lockstep::name_of(dtype) << " op " << static_cast<int>(op);
      }
    }
  }
}

TEST_P(Collectives, AllReduceHasTheBitsOfOneRankReduceOverAllRanks) {
  if (GetParam() == Path::kNodes) GTEST_SKIP() << "between nodes, partial sums are rounded to the wire's dtype";
  const auto random = [](int r, std::int64_t i) {
    return std::sin(static_cast<double>(i * 7919 % 10007 + r * 131)) * std::exp2(static_cast<double>(i % 13) - 6);
  };
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const std::int64_t count : {std::int64_t{1001}, std::int64_t{20011}, std::int64_t{100003}}) {
      std::vector<Tensor> inputs;
      std::vector<const void*> sources;
      std::vector<float> premultiply;
      for (int r = 0; r < size(); ++r) {
        inputs.push_back(Tensor::empty({count}, dtype));
        fill(inputs.back(), [&](std::int64_t i) { return random(r, i); });
        sources.push_back(inputs.back().data());
        premultiply.push_back(0.3f + 0.1f * static_cast<float>(r));
      }
      const Tensor expected = Tensor::empty({count}, dtype);
      void* const output = expected.data();
      kernels::cpu::rank_reduce(kernels::cpu::RankReduction::kSum, dtype, count, sources, premultiply,
                                1.0f / static_cast<float>(size()), {&output, 1});

      const Tensor tensor = buffer(count, dtype);
      fill(tensor, [&](std::int64_t i) { return random(rank(), i); });
      group().all_reduce(tensor, ReduceOp::kAverage, 0.3f + 0.1f * static_cast<float>(rank()), stream_);
      EXPECT_EQ(std::memcmp(tensor.data(), expected.data(), tensor.bytes()), 0)
          << count << " " << lockstep::name_of(dtype);
    }
  }
}

TEST_P(Collectives, HalfSumsDoNotOverflowOnTheWay) {
  for (const std::int64_t count : {std::int64_t{5}, std::int64_t{40000}}) {
    const Tensor average = buffer(count, DType::kFloat16);
    fill(average, [](std::int64_t) { return 60000.0; });
    group().all_reduce(average, ReduceOp::kAverage, 1.0f, stream_);
    EXPECT_EQ(average.item(0), 60000.0);
    EXPECT_EQ(average.item(count - 1), 60000.0);

    const Tensor sum = buffer(count, DType::kFloat16);
    fill(sum, [](std::int64_t) { return 40000.0; });
    group().all_reduce(sum, ReduceOp::kSum, 0.25f, stream_);
    EXPECT_EQ(sum.item(count / 2), 10000.0 * size());
  }
}

TEST_P(Collectives, EveryRankMultipliesByItsOwnFactor) {
  for (const std::int64_t count : {std::int64_t{7}, std::int64_t{30000}}) {
    const Tensor tensor = buffer(count, DType::kFloat32);
    fill(tensor, [](std::int64_t) { return 8.0; });
    group().all_reduce(tensor, ReduceOp::kSum, static_cast<float>(rank() + 1) * 0.5f, stream_);
    EXPECT_THAT(tensor.as<float>(), Each(Eq(4.0f * static_cast<float>(size() * (size() + 1) / 2))));
  }
}

TEST_P(Collectives, MaxOfNaNIsNaNOnEveryRank) {
  for (const std::int64_t count : {std::int64_t{4}, std::int64_t{30000}}) {
    const Tensor tensor = buffer(count, DType::kFloat16);
    fill(tensor, [&](std::int64_t i) { return i == 2 && rank() == size() - 1 ? std::nan("") : rank() - 10.0; });
    group().all_reduce(tensor, ReduceOp::kMax, 1.0f, stream_);
    EXPECT_TRUE(std::isnan(tensor.item(2)));
    EXPECT_EQ(tensor.item(1), size() - 11.0);
  }
}

TEST_P(Collectives, BroadcastTakesTheRootsBytes) {
  for (int root = 0; root < size(); ++root) {
    for (const std::int64_t count : {std::int64_t{0}, std::int64_t{3}, std::int64_t{200003}}) {
      const Tensor tensor = Tensor::zeros({count}, DType::kUInt8);
      fill(tensor, [&](std::int64_t i) { return (i + rank()) % 251; });
      group().broadcast(tensor, root, stream_);
      const Tensor expected = Tensor::zeros({count}, DType::kUInt8);
      fill(expected, [&](std::int64_t i) { return (i + root) % 251; });
      EXPECT_TRUE(std::ranges::equal(tensor.as<std::uint8_t>(), expected.as<std::uint8_t>())) << count;
    }
  }
  const Tensor flag = Tensor::from<std::int64_t>({rank() + 5}, {});
  group().broadcast(flag, size() - 1, stream_);
  EXPECT_EQ(flag.item(), size() + 4);
}

TEST_P(Collectives, AllGatherIsInRankOrder) {
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{50001}}) {
    const Tensor out = Tensor::zeros({size(), count}, DType::kInt32);
    const Tensor in = Tensor::zeros({count}, DType::kInt32);
    fill(in, [&](std::int64_t i) { return static_cast<double>(i * 10 + rank()); });
    group().all_gather(in, out, stream_);
    const Tensor expected = Tensor::zeros({size(), count}, DType::kInt32);
    fill(expected, [&](std::int64_t i) { return static_cast<double>(i % count * 10 + i / count); });
    EXPECT_TRUE(std::ranges::equal(out.as<std::int32_t>(), expected.as<std::int32_t>())) << count;

    // The input may lie in its place of the output.
    fill(out, [](std::int64_t) { return -1.0; });
    fill(out.rows(rank(), rank() + 1), [&](std::int64_t i) { return static_cast<double>(i * 10 + rank()); });
    group().all_gather(out.rows(rank(), rank() + 1), out, stream_);
    EXPECT_TRUE(std::ranges::equal(out.as<std::int32_t>(), expected.as<std::int32_t>())) << count;
  }
}

TEST_P(Collectives, ReduceScatterLeavesEachRankItsSlice) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kInt64}) {
    for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{77}, std::int64_t{30001}}) {
      const Tensor in = buffer(count * size(), dtype);
      fill(in, [&](std::int64_t i) { return contribution(rank(), i); });
      const Tensor out = Tensor::zeros({count}, dtype);
      group().reduce_scatter(in, out, ReduceOp::kSum, stream_);
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        double sum = 0;
        for (int r = 0; r < size(); ++r) sum += contribution(r, rank() * count + i);
        if (out.item(i) != sum) ++wrong;
      }
      EXPECT_EQ(wrong, 0) << count << " " << lockstep::name_of(dtype);
    }
  }
}

TEST_P(Collectives, TextOfAnyLength) {
  std::vector<std::string> expected;
  for (int r = 0; r < size(); ++r) expected.push_back(std::string(static_cast<std::size_t>(r) * 40000, 'a'));
  EXPECT_EQ(group().all_gather_text(expected[static_cast<std::size_t>(rank())]), expected);
  EXPECT_EQ(group().broadcast_text("from " + std::to_string(rank()), size() - 1), "from " + std::to_string(size() - 1));
  EXPECT_EQ(group().broadcast_text("", 0), "");
}

TEST_P(Collectives, SlicesOfAnAllocationMixWithPrivateBuffers) {
  const Tensor arena = buffer(100000, DType::kFloat32);
  fill(arena, [](std::int64_t) { return 1.0; });
  // One rank reduces a private copy, the others their windows.
  const Tensor slice = arena.rows(1003, 60000);
  const Tensor copy = Tensor::empty({slice.numel()}, DType::kFloat32);
  fill(copy, [](std::int64_t) { return 1.0; });
  const Tensor mine = rank() == size() - 1 ? copy : slice;
  group().all_reduce(mine, ReduceOp::kSum, 1.0f, stream_);
  EXPECT_THAT(mine.as<float>(), Each(Eq(static_cast<float>(size()))));
  EXPECT_EQ(arena.item(1002), 1.0);
  EXPECT_EQ(arena.item(60000), 1.0);

  group().all_reduce(arena.rows(90001, 99999), ReduceOp::kSum, 1.0f, stream_);
  EXPECT_EQ(arena.item(90000), 1.0);
  EXPECT_EQ(arena.item(90001), size());
  EXPECT_EQ(arena.item(99998), size());
  EXPECT_EQ(arena.item(99999), 1.0);
}

TEST_P(Collectives, TwoChannelsRunAtOnceFromTwoThreads) {
  const std::shared_ptr<Communicator> gradients = group().duplicate("gradients");
  const Stream worker = Stream::worker("gradients");
  const Tensor large = buffer(50000, DType::kFloat32);
  const Tensor small = Tensor::zeros({16}, DType::kFloat32);
  for (int step = 1; step <= 30; ++step) {
    fill(large, [&](std::int64_t) { return step; });
    for (std::int64_t begin = 0; begin < large.numel(); begin += 12500) {
      gradients->all_reduce(large.rows(begin, begin + 12500), ReduceOp::kAverage, 1.0f, worker);
    }
    for (int i = 0; i < 10; ++i) {
      fill(small, [&](std::int64_t) { return step + i; });
      group().all_reduce(small, ReduceOp::kSum, 1.0f, stream_);
      ASSERT_THAT(small.as<float>(), Each(Eq(static_cast<float>((step + i) * size()))));
    }
    worker.synchronize();
    ASSERT_NEAR(large.item(step), step, 1e-5);
    ASSERT_NEAR(large.item(49999), step, 1e-5);
  }
}

TEST_P(Collectives, MemoryIsGivenBackForLaterAllocations) {
  for (int i = 0; i < 8; ++i) {
    const Tensor tensor = Tensor::view(group().allocate(40000), 0, {10000}, DType::kFloat32);
    ASSERT_THAT(tensor.as<float>(), Each(Eq(0.0f)));
    fill(tensor, [](std::int64_t) { return 1.0; });
    group().all_reduce(tensor, ReduceOp::kSum, 1.0f, stream_);
    ASSERT_EQ(tensor.item(9999), size());
  }
}

TEST_P(Collectives, ArgumentsAreCheckedBeforeAnyoneWaits) {
  const Tensor bytes = Tensor::zeros({4}, DType::kUInt8);
  const Tensor integers = Tensor::zeros({4}, DType::kInt32);
  EXPECT_THROW(group().all_reduce(bytes, ReduceOp::kSum, 1.0f, stream_), ShapeError);
  EXPECT_THROW(group().all_reduce(integers, ReduceOp::kAverage, 1.0f, stream_), ShapeError);
  EXPECT_THROW(group().all_reduce(integers, ReduceOp::kSum, 0.5f, stream_), ShapeError);
  EXPECT_THROW(group().all_gather(integers, Tensor::zeros({4 * size() + 1}, DType::kInt32), stream_), ShapeError);
  EXPECT_THROW(group().reduce_scatter(integers, Tensor::zeros({5}, DType::kInt32), ReduceOp::kSum, stream_),
               ShapeError);
  EXPECT_THROW(group().broadcast(integers, size(), stream_), UsageError);
  group().barrier(stream_);
}

TEST_P(Collectives, DescribesHowTheRanksReachEachOther) {
  EXPECT_EQ(world_->local_size(), size());
  EXPECT_EQ(world_->local_rank(), rank());
  if (size() == 1) {
    EXPECT_EQ(group().description(), "self");
  } else if (launch_environment().launcher == LaunchEnvironment::Launcher::kTorchrun) {
    EXPECT_EQ(group().description(), "tcp");
  } else if (GetParam() == Path::kWindow || GetParam() == Path::kPrivate) {
    EXPECT_EQ(group().description(), "mpi, shared memory");
  } else if (GetParam() == Path::kMpi || GetParam() == Path::kNoRoom) {
    EXPECT_EQ(group().description(), "mpi");
  }
}

}  // namespace
}  // namespace lockstep::comm
