// SPDX-License-Identifier: Apache-2.0
// Every collective, over each way in which ranks can reach each other's memory. Run as 1 to 4 ranks; the suite Nccl,
// between GPUs, which the ranks share where there are fewer, as 1 to 3.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "comm/group/device_waits.h"
#include "comm/group/launch_environment.h"
#include "comm/group/nccl_communicator.h"
#include "comm/group/world.h"
#include "runtime/kernels/rank_reduce.h"
#include "runtime/tensor/error.h"
#include "tests/comm/rank_device.h"

namespace lockstep::comm {
namespace {

using testing::ElementsAre;

enum class Path { kWindow, kPrivate, kTransport, kShortage, kNoRoom, kNodes, kNccl };

std::string name_of(Path path) {
  switch (path) {
    case Path::kWindow:
      return "Window";
    case Path::kPrivate:
      return "PrivateBuffers";
    case Path::kTransport:
      return "Transport";
    case Path::kShortage:
      return "TooLittleSharedMemory";
    case Path::kNoRoom:
      return "NoSharedMemory";
    case Path::kNodes:
      return "PretendedNodes";
    case Path::kNccl:
      return "cuda";
  }
  return "";
}

class Collectives : public testing::TestWithParam<Path> {
 protected:
  void SetUp() override {
    if (GetParam() == Path::kNccl) {
      if (const auto reason = lockstep::devices::why_skipped(lockstep::devices::kGpu)) GTEST_SKIP() << *reason;
      device_ = rank_device(lockstep::devices::kGpu);
      join_gpus();
      return;
    }
    // Read when the world is made, so that no two tests of this process see each other's.
    if (GetParam() == Path::kShortage) setenv("LOCKSTEP_SHARED_MEMORY_BYTES", "1500000", 1);
    if (GetParam() == Path::kNoRoom) setenv("LOCKSTEP_SHARED_MEMORY_BYTES", "0", 1);
    if (GetParam() == Path::kNodes) setenv("LOCKSTEP_RANKS_PER_NODE", "2", 1);
    world_ = std::make_shared<World>(World::from_environment(
        {.timeout = std::chrono::seconds(60), .shared_memory = GetParam() != Path::kTransport}));
    group_ = world_->communicator();
    unsetenv("LOCKSTEP_RANKS_PER_NODE");
  }
  void TearDown() override {
    arena_ = {};
    group_.reset();
    world_.reset();
    unsetenv("LOCKSTEP_SHARED_MEMORY_BYTES");
  }

  static void TearDownTestSuite() {
    gpu_group.reset();
    gpu_world.reset();
  }
  /// One group for all tests: NCCL takes a while to start.
  void join_gpus() {
    const CommunicatorOptions options{.timeout = std::chrono::seconds(60), .device = device_};
    if (gpu_world == nullptr) {
      gpu_world = std::make_shared<World>(World::from_environment(options));
      // A lone rank needs no NCCL, but has to get along with it.
      gpu_group = gpu_world->size() == 1 ? make_nccl_communicator(make_self_communicator(), device_, options)
                                         : gpu_world->communicator();
    }
    world_ = gpu_world;
    group_ = gpu_group;
  }

  Communicator& group() { return *group_; }
  /// Where work on the device is enqueued.
  Stream stream() const { return Stream::current(device_); }
  bool is_nccl() const { return GetParam() == Path::kNccl; }
  int rank() { return world_->rank(); }
  int size() { return world_->size(); }

  /// In a shared window where the path has one. Every call gives the same memory.
  Tensor buffer(std::int64_t count, DType dtype) {
    if (!arena_) {
      arena_ = GetParam() == Path::kPrivate ? Storage::allocate(kArenaBytes, kCpu) : group().allocate(kArenaBytes);
      EXPECT_EQ(arena_.device(), device_);
    }
    return Tensor::view(arena_, 0, {count}, dtype);
  }

  Tensor zeros(const Shape& shape, DType dtype) const { return Tensor::zeros(shape, dtype, device_); }

  static constexpr std::size_t kArenaBytes = 1 << 20;
  Device device_ = kCpu;
  std::shared_ptr<World> world_;
  std::shared_ptr<Communicator> group_;
  Storage arena_;
  inline static std::shared_ptr<World> gpu_world;
  inline static std::shared_ptr<Communicator> gpu_group;
};

INSTANTIATE_TEST_SUITE_P(Paths, Collectives,
                         testing::Values(Path::kWindow, Path::kPrivate, Path::kTransport, Path::kShortage,
                                         Path::kNoRoom, Path::kNodes),
                         [](const auto& path) { return name_of(path.param); });
INSTANTIATE_TEST_SUITE_P(Nccl, Collectives, testing::Values(Path::kNccl),
                         [](const auto& path) { return name_of(path.param); });

void set(const Tensor& tensor, std::int64_t at, double value) {
  const auto i = static_cast<std::size_t>(at);
  switch (tensor.dtype()) {
    case DType::kFloat32:
      tensor.mutable_as<float>()[i] = static_cast<float>(value);
      break;
    case DType::kFloat16:
      tensor.mutable_as<Half>()[i] = Half(static_cast<float>(value));
      break;
    case DType::kBFloat16:
      tensor.mutable_as<BFloat16>()[i] = BFloat16(static_cast<float>(value));
      break;
    case DType::kFloat64:
      tensor.mutable_as<double>()[i] = value;
      break;
    case DType::kInt64:
      tensor.mutable_as<std::int64_t>()[i] = static_cast<std::int64_t>(value);
      break;
    case DType::kInt32:
      tensor.mutable_as<std::int32_t>()[i] = static_cast<std::int32_t>(value);
      break;
    case DType::kUInt8:
      tensor.mutable_as<std::uint8_t>()[i] = static_cast<std::uint8_t>(value);
      break;
    case DType::kBool:
      tensor.mutable_as<bool>()[i] = value != 0;
      break;
  }
}

template <class F>
void fill(const Tensor& tensor, F value) {
  const bool here = tensor.device() == kCpu;
  const Tensor host = here ? tensor : Tensor::zeros(tensor.shape(), tensor.dtype());
  for (std::int64_t i = 0; i < host.numel(); ++i) set(host, i, value(i));
  if (!here) tensor.copy_from(host);
}

constexpr DType kReducible[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16,
                                DType::kFloat64, DType::kInt64,   DType::kInt32};
// Nothing, one, an odd few, a cache line either side, what is staged, in place, and beyond the staging area.
constexpr std::int64_t kCounts[] = {0, 1, 3, 31, 33, 1000, 9001, 16384, 16385, 70001};

/// Multiples of 12, so that even an average over up to 4 ranks is a small integer, exact in every dtype.
double contribution(int rank, std::int64_t i) { return 12.0 * static_cast<double>((i * 5 + rank * 3) % 9 - 4); }

/// Counts the elements that are further from value(i) than the tolerance.
template <class F>
void expect_equal(const Tensor& tensor, F value, double tolerance = 0) {
  const Tensor host = tensor.to(kCpu).reshaped({tensor.numel()});
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < host.numel(); ++i) wrong += std::abs(host.item(i) - value(i)) > tolerance ? 1 : 0;
  EXPECT_EQ(wrong, 0) << "of " << describe(tensor);
}

void expect_all(const Tensor& tensor, double value) {
  expect_equal(tensor, [value](std::int64_t) { return value; });
}

TEST_P(Collectives, AllReduceIsExactForEveryDtypeAndCount) {
  for (const DType dtype : kReducible) {
    for (const std::int64_t count : kCounts) {
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kAverage}) {
        if (op == ReduceOp::kAverage && !is_floating(dtype)) continue;
        const Tensor tensor = buffer(count, dtype);
        fill(tensor, [&](std::int64_t i) { return contribution(rank(), i); });
        group().all_reduce(tensor, op, 1.0f, stream());
        const Tensor result = tensor.to(kCpu);
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
          if (std::abs(result.item(i) - expected) > (op == ReduceOp::kAverage ? 1e-5 : 0.0)) ++wrong;
        }
        EXPECT_EQ(wrong, 0) << count << " " << lockstep::name_of(dtype) << " op " << static_cast<int>(op);
      }
    }
  }
}

TEST_P(Collectives, AllReduceHasTheBitsOfOneRankReduceOverAllRanks) {
  if (GetParam() == Path::kNodes) GTEST_SKIP() << "between nodes, partial sums are rounded to the wire's dtype";
  if (is_nccl()) GTEST_SKIP() << "NCCL adds in an order of its own";
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
      kernels::rank_reduce(kernels::RankReduction::kSum, dtype, count, sources, premultiply,
                           1.0f / static_cast<float>(size()), {&output, 1});

      const Tensor tensor = buffer(count, dtype);
      fill(tensor, [&](std::int64_t i) { return random(rank(), i); });
      group().all_reduce(tensor, ReduceOp::kAverage, 0.3f + 0.1f * static_cast<float>(rank()), stream());
      EXPECT_EQ(std::memcmp(tensor.data(), expected.data(), tensor.bytes()), 0)
          << count << " " << lockstep::name_of(dtype);
    }
  }
}

TEST_P(Collectives, HalfSumsDoNotOverflowOnTheWay) {
  for (const std::int64_t count : {std::int64_t{5}, std::int64_t{40000}}) {
    const Tensor average = buffer(count, DType::kFloat16);
    fill(average, [](std::int64_t) { return 60000.0; });
    group().all_reduce(average, ReduceOp::kAverage, 1.0f, stream());
    const double tolerance = is_nccl() ? 32.0 : 0.0;  // one in the last place of what NCCL rounds on the way
    EXPECT_NEAR(average.item(0), 60000.0, tolerance);
    EXPECT_NEAR(average.item(count - 1), 60000.0, tolerance);

    const Tensor sum = buffer(count, DType::kFloat16);
    fill(sum, [](std::int64_t) { return 40000.0; });
    group().all_reduce(sum, ReduceOp::kSum, 0.25f, stream());
    EXPECT_EQ(sum.item(count / 2), 10000.0 * size());
  }
}

TEST_P(Collectives, EveryRankMultipliesByItsOwnFactor) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const std::int64_t count : {std::int64_t{7}, std::int64_t{30000}}) {
      const Tensor tensor = buffer(count, dtype);
      fill(tensor, [](std::int64_t) { return 8.0; });
      group().all_reduce(tensor, ReduceOp::kSum, static_cast<float>(rank() + 1) * 0.5f, stream());
      expect_all(tensor, 4.0 * (size() * (size() + 1) / 2));
    }
  }
}

TEST_P(Collectives, MaxOfNaNIsNaNOnEveryRank) {
  if (is_nccl()) GTEST_SKIP() << "NCCL's maximum may lose a NaN";
  for (const std::int64_t count : {std::int64_t{4}, std::int64_t{30000}}) {
    const Tensor tensor = buffer(count, DType::kFloat16);
    fill(tensor, [&](std::int64_t i) { return i == 2 && rank() == size() - 1 ? std::nan("") : rank() - 10.0; });
    group().all_reduce(tensor, ReduceOp::kMax, 1.0f, stream());
    EXPECT_TRUE(std::isnan(tensor.item(2)));
    EXPECT_EQ(tensor.item(1), size() - 11.0);
  }
}

TEST_P(Collectives, BroadcastTakesTheRootsBytes) {
  for (int root = 0; root < size(); ++root) {
    for (const DType dtype : {DType::kUInt8, DType::kBool, DType::kInt64, DType::kFloat16}) {
      const int period = dtype == DType::kUInt8 ? 251 : 2;
      for (const std::int64_t count : {0, 3, dtype == DType::kUInt8 ? 200003 : 20003}) {
        const Tensor tensor = zeros({count}, dtype);
        fill(tensor, [&](std::int64_t i) { return static_cast<double>((i + rank()) % period); });
        group().broadcast(tensor, root, stream());
        expect_equal(tensor, [&](std::int64_t i) { return static_cast<double>((i + root) % period); });
      }
    }
  }
  const Tensor flag = Tensor::from<std::int64_t>({rank() + 5}, {}).to(device_);
  group().broadcast(flag, size() - 1, stream());
  EXPECT_EQ(flag.item(), size() + 4);
}

TEST_P(Collectives, AllGatherIsInRankOrder) {
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{50001}}) {
    const Tensor out = zeros({size(), count}, DType::kInt32);
    const Tensor in = zeros({count}, DType::kInt32);
    fill(in, [&](std::int64_t i) { return static_cast<double>(i * 10 + rank()); });
    group().all_gather(in, out, stream());
    const auto expected = [&](std::int64_t i) { return static_cast<double>(i % count * 10 + i / count); };
    expect_equal(out, expected);

    // The input may lie in its place of the output.
    fill(out, [](std::int64_t) { return -1.0; });
    fill(out.rows(rank(), rank() + 1), [&](std::int64_t i) { return static_cast<double>(i * 10 + rank()); });
    group().all_gather(out.rows(rank(), rank() + 1), out, stream());
    expect_equal(out, expected);
  }
}

TEST_P(Collectives, ReduceScatterLeavesEachRankItsSlice) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt64}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage}) {
      if (op == ReduceOp::kAverage && !is_floating(dtype)) continue;
      for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{77}, std::int64_t{30001}}) {
        SCOPED_TRACE(std::string(lockstep::name_of(dtype)) + " op " + std::to_string(static_cast<int>(op)));
        const Tensor in = buffer(count * size(), dtype);
        fill(in, [&](std::int64_t i) { return contribution(rank(), i); });
        const Tensor out = zeros({count}, dtype);
        group().reduce_scatter(in, out, op, stream());
        expect_equal(
            out,
            [&](std::int64_t i) {
              double sum = 0;
              for (int r = 0; r < size(); ++r) sum += contribution(r, rank() * count + i);
              return op == ReduceOp::kSum ? sum : sum / size();
            },
            op == ReduceOp::kSum ? 0.0 : 1e-5);
      }
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
  const Tensor copy = zeros({slice.numel()}, DType::kFloat32);
  fill(copy, [](std::int64_t) { return 1.0; });
  const Tensor mine = rank() == size() - 1 ? copy : slice;
  group().all_reduce(mine, ReduceOp::kSum, 1.0f, stream());
  expect_all(mine, size());
  EXPECT_EQ(arena.item(1002), 1.0);
  EXPECT_EQ(arena.item(60000), 1.0);

  group().all_reduce(arena.rows(90001, 99999), ReduceOp::kSum, 1.0f, stream());
  EXPECT_EQ(arena.item(90000), 1.0);
  EXPECT_EQ(arena.item(90001), size());
  EXPECT_EQ(arena.item(99998), size());
  EXPECT_EQ(arena.item(99999), 1.0);
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

TEST_P(Collectives, ArgumentsAreCheckedBeforeAnyoneWaits) {
  const Tensor bytes = zeros({4}, DType::kUInt8);
  const Tensor integers = zeros({4}, DType::kInt32);
  EXPECT_THROW(group().all_reduce(bytes, ReduceOp::kSum, 1.0f, stream()), ShapeError);
  EXPECT_THROW(group().all_reduce(integers, ReduceOp::kAverage, 1.0f, stream()), ShapeError);
  EXPECT_THROW(group().all_reduce(integers, ReduceOp::kSum, 0.5f, stream()), ShapeError);
  EXPECT_THROW(group().all_gather(integers, zeros({4 * size() + 1}, DType::kInt32), stream()), ShapeError);
  EXPECT_THROW(group().reduce_scatter(integers, zeros({5}, DType::kInt32), ReduceOp::kSum, stream()), ShapeError);
  EXPECT_THROW(group().broadcast(integers, size(), stream()), UsageError);
  if (is_nccl()) {
    EXPECT_THROW(group().all_gather(integers, Tensor::zeros({4 * size()}, DType::kInt32), stream()), ShapeError);
    // A GPU's buffer cannot travel on the calling thread.
    EXPECT_THROW(group().broadcast(integers, 0, Stream::calling_thread()), UsageError);
  }
  group().barrier(stream());
  stream().synchronize();
}

TEST_P(Collectives, BuffersOfTheCpuAlwaysTravel) {
  const Tensor host = Tensor::from<float>({1, 2}, {2});
  group().all_reduce(host, ReduceOp::kSum, 1.0f, Stream::calling_thread());
  EXPECT_EQ(host.item(1), 2.0 * size());
  group().barrier(Stream::calling_thread());
}

TEST_P(Collectives, WatchALaunch) {
  bool launched = false;
  launch_watched(group(), stream(), [&] { launched = true; });
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
    const bool tcp = launch_environment().launcher == LaunchEnvironment::Launcher::kTorchrun;
    const std::string transport = tcp ? "tcp" : "mpi";
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
