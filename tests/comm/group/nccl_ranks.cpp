// SPDX-License-Identifier: Apache-2.0
// Every collective between GPUs. Run as 1 to 3 ranks, which share GPUs where there are fewer; skipped where there is
// none.
#include <gmock/gmock.h>

#include <cmath>

#include "comm/group/nccl_communicator.h"
#include "runtime/tensor/error.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::comm {
namespace {

using testing::Each;
using testing::Eq;

class Nccl : public testing::Test {
 protected:
  // One group for all tests: NCCL takes a while to start.
  static void SetUpTestSuite() {
    if (gpu::device_count() == 0) return;
    device_ = {DeviceType::kCuda, launch_environment().local_rank % gpu::device_count()};
    const CommunicatorOptions options{.timeout = std::chrono::seconds(30), .device = device_};
    world_.emplace(World::from_environment(options));
    // A lone rank needs no NCCL, but has to get along with it.
    group_ = world_->size() == 1 ? make_nccl_communicator(make_self_communicator(), device_, options)
                                 : world_->communicator();
  }
  static void TearDownTestSuite() {
    group_.reset();
    world_.reset();
  }
  void SetUp() override {
    if (gpu::device_count() == 0) GTEST_SKIP() << "no GPU: every test is skipped (" << gpu::why_none() << ")";
  }

  static Communicator& group() { return *group_; }
  static int rank() { return world_->rank(); }
  static int size() { return world_->size(); }
  static Stream stream() { return Stream::current(device_); }

  /// value(i) in `dtype` on the device.
  template <class F>
  static Tensor filled(std::int64_t count, DType dtype, F value) {
    const Tensor host = Tensor::zeros({count}, dtype);
    for (std::int64_t i = 0; i < count; ++i) set(host, i, value(i));
    return host.to(device_);
  }
  static void set(const Tensor& tensor, std::int64_t at, double value) {
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

  inline static Device device_;
  inline static std::optional<World> world_;
  inline static std::shared_ptr<Communicator> group_;
};

constexpr DType kReducible[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16,
                                DType::kFloat64, DType::kInt64,   DType::kInt32};
constexpr std::int64_t kCounts[] = {0, 1, 3, 1000, 70001};

/// Multiples of 12, so that even an average over up to 4 ranks is a small integer, exact in every dtype.
double contribution(int rank, std::int64_t i) { return 12.0 * static_cast<double>((i * 5 + rank * 3) % 9 - 4); }

TEST_F(Nccl, AllReduceIsExactForEveryDtypeAndCount) {
  for (const DType dtype : kReducible) {
    for (const std::int64_t count : kCounts) {
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kAverage}) {
        if (op == ReduceOp::kAverage && !is_floating(dtype)) continue;
        const Tensor tensor = filled(count, dtype, [](std::int64_t i) { return contribution(rank(), i); });
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

TEST_F(Nccl, EveryRankMultipliesByItsOwnFactor) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    const Tensor tensor = filled(30000, dtype, [](std::int64_t) { return 8.0; });
    group().all_reduce(tensor, ReduceOp::kSum, static_cast<float>(rank() + 1) * 0.5f, stream());
    const Tensor result = tensor.to(kCpu);
    EXPECT_EQ(result.item(0), 4.0 * (size() * (size() + 1) / 2));
    EXPECT_EQ(result.item(29999), 4.0 * (size() * (size() + 1) / 2));
  }
}

TEST_F(Nccl, HalfAveragesDoNotOverflowOnTheWay) {
  const Tensor average = filled(40000, DType::kFloat16, [](std::int64_t) { return 60000.0; });
  group().all_reduce(average, ReduceOp::kAverage, 1.0f, stream());
  EXPECT_NEAR(average.to(kCpu).item(39999), 60000.0, 32.0);
}

TEST_F(Nccl, BroadcastTakesTheRootsBytes) {
  for (const DType dtype : {DType::kUInt8, DType::kBool, DType::kInt64, DType::kFloat16}) {
    for (int root = 0; root < size(); ++root) {
      const auto value = [](int r) { return [r](std::int64_t i) { return static_cast<double>((i + r) % 2); }; };
      const Tensor tensor = filled(20003, dtype, value(rank()));
      group().broadcast(tensor, root, stream());
      const Tensor result = tensor.to(kCpu);
      for (const std::int64_t i : {0, 1, 20002}) EXPECT_EQ(result.item(i), value(root)(i)) << root;
    }
  }
}

TEST_F(Nccl, AllGatherIsInRankOrderAlsoInPlace) {
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{5001}}) {
    const auto value = [](std::int64_t i) { return static_cast<double>(i * 10 + rank()); };
    const Tensor in = filled(count, DType::kInt32, value);
    const Tensor out = Tensor::zeros({size(), count}, DType::kInt32, device_);
    group().all_gather(in, out, stream());
    const Tensor place = Tensor::zeros({size(), count}, DType::kInt32, device_);
    if (count > 0) place.rows(rank(), rank() + 1).reshaped({count}).copy_from(in);
    group().all_gather(place.rows(rank(), rank() + 1), place, stream());
    for (const Tensor& result : {out.to(kCpu), place.to(kCpu)}) {
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < result.numel(); ++i) {
        if (result.item(i) != static_cast<double>(i % count * 10 + i / count)) ++wrong;
      }
      EXPECT_EQ(wrong, 0) << count;
    }
  }
}

TEST_F(Nccl, ReduceScatterLeavesEachRankItsSlice) {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage}) {
    for (const std::int64_t count : {std::int64_t{0}, std::int64_t{77}, std::int64_t{30001}}) {
      const Tensor in =
          filled(count * size(), DType::kBFloat16, [](std::int64_t i) { return contribution(rank(), i); });
      const Tensor out = Tensor::zeros({count}, DType::kBFloat16, device_);
      group().reduce_scatter(in, out, op, stream());
      const Tensor result = out.to(kCpu);
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        double sum = 0;
        for (int r = 0; r < size(); ++r) sum += contribution(r, rank() * count + i);
        if (result.item(i) != (op == ReduceOp::kSum ? sum : sum / size())) ++wrong;
      }
      EXPECT_EQ(wrong, 0) << count;
    }
  }
}

TEST_F(Nccl, ChannelsRunBesideEachOtherOnStreamsOfTheirOwn) {
  const std::shared_ptr<Communicator> buckets = group().duplicate("buckets");
  const Stream other = Stream::create(device_, "buckets");
  const Tensor large = filled(500000, DType::kFloat32, [](std::int64_t) { return 1.0; });
  const Tensor small = filled(16, DType::kFloat32, [](std::int64_t) { return 1.0; });
  other.wait(stream().record());
  double expected = 1.0;
  for (int step = 0; step < 20; ++step, expected *= size()) {
    buckets->all_reduce(large, ReduceOp::kSum, 1.0f, other);
    group().all_reduce(small, ReduceOp::kSum, 1.0f, stream());
  }
  stream().wait(other.record());
  EXPECT_EQ(large.to(kCpu).item(499999), expected);
  EXPECT_EQ(small.to(kCpu).item(15), expected);
}

TEST_F(Nccl, AllocatesZeroedMemoryOfTheDevice) {
  const Storage storage = group().allocate(1 << 20);
  EXPECT_EQ(storage.device(), device_);
  const Tensor tensor = Tensor::view(storage, 0, {1 << 18}, DType::kFloat32);
  EXPECT_THAT(tensor.to(kCpu).as<float>(), Each(Eq(0.0f)));
  group().all_reduce(tensor, ReduceOp::kSum, 1.0f, stream());
  stream().synchronize();
}

TEST_F(Nccl, TensorsOfTheCpuAndTextGoThroughTheHost) {
  const Tensor host = Tensor::from<float>({1, 2}, {2});
  group().all_reduce(host, ReduceOp::kSum, 1.0f, Stream::calling_thread());
  EXPECT_EQ(host.item(1), 2.0 * size());
  EXPECT_EQ(group().broadcast_text("from " + std::to_string(rank()), 0), "from 0");
  group().barrier(Stream::calling_thread());
  group().barrier(stream());
  stream().synchronize();
}

TEST_F(Nccl, WatchesALaunch) {
  bool launched = false;
  group().watch(stream(), [&] { launched = true; });
  EXPECT_TRUE(launched);
  stream().synchronize();
}

TEST_F(Nccl, WrongArgumentsAreRefusedWhereTheyAreMade) {
  const Tensor flags = Tensor::zeros({4}, DType::kBool, device_);
  EXPECT_THROW(group().all_reduce(flags, ReduceOp::kSum, 1.0f, stream()), ShapeError);
  EXPECT_THROW(group().all_gather(flags, Tensor::zeros({4 * size() + 1}, DType::kBool, device_), stream()), ShapeError);
  EXPECT_THROW(group().all_gather(flags, Tensor::zeros({4 * size()}, DType::kBool), stream()), ShapeError);
  EXPECT_THROW(group().broadcast(flags, size(), stream()), UsageError);
  // A GPU's buffer cannot travel on the calling thread.
  EXPECT_THROW(group().broadcast(flags, 0, Stream::calling_thread()), UsageError);
}

}  // namespace
}  // namespace lockstep::comm
