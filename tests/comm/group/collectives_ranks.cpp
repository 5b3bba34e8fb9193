// SPDX-License-Identifier: Apache-2.0
// What every collective computes.
#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/kernels/rank_reduce.h"
#include "tests/comm/group/rank_groups.h"

namespace lockstep::comm {
namespace {

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

/// factor * the sum over `inputs`, in their order.
Tensor summed(const std::vector<Tensor>& inputs, const std::vector<float>& premultiply, double factor) {
  std::vector<const void*> sources;
  for (const Tensor& input : inputs) sources.push_back(input.data());
  const Tensor sum = Tensor::empty(inputs.front().shape(), inputs.front().dtype());
  void* const output = sum.data();
  kernels::rank_reduce(kernels::RankReduction::kSum, sum.dtype(), sum.numel(), sources, premultiply, factor,
                       {&output, 1});
  return sum;
}

Tensor cast_to(DType dtype, const Tensor& tensor) {
  const Tensor result = Tensor::empty(tensor.shape(), dtype);
  kernels::cast(tensor, result);
  return result;
}

/// The average of four ranks on two nodes: each node's in fp32, then that of both, rounded once.
Tensor averaged_by_nodes(const std::vector<Tensor>& inputs, const std::vector<float>& premultiply) {
  std::vector<Tensor> nodes;
  for (const std::size_t first : {0, 2}) {
    const std::vector<Tensor> wide{cast_to(DType::kFloat32, inputs[first]),
                                   cast_to(DType::kFloat32, inputs[first + 1])};
    nodes.push_back(summed(wide, {premultiply[first], premultiply[first + 1]}, 0.5));
  }
  return cast_to(inputs.front().dtype(), summed(nodes, {1.0f, 1.0f}, 0.5));
}

// Over every transport, and in whatever order what the ranks send arrives. Nodes of unequal size, as of three ranks
// here, share no memory: then, too, the sum is in rank order.
TEST_P(Collectives, AllReduceHasTheBitsOfOneRankReduceOverAllRanksOrOfOneANode) {
  if (is_nccl()) GTEST_SKIP() << "NCCL adds in an order of its own";
  const auto random = [](int r, std::int64_t i) {
    return std::sin(static_cast<double>(i * 7919 % 10007 + r * 131)) * std::exp2(static_cast<double>(i % 13) - 6);
  };
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const std::int64_t count : {std::int64_t{1001}, std::int64_t{20011}, std::int64_t{100003}}) {
      std::vector<Tensor> inputs;
      std::vector<float> premultiply;
      for (int r = 0; r < size(); ++r) {
        inputs.push_back(Tensor::empty({count}, dtype));
        fill(inputs.back(), [&](std::int64_t i) { return random(r, i); });
        premultiply.push_back(0.3f + 0.1f * static_cast<float>(r));
      }
      const bool by_nodes = GetParam() == Path::kNodes && size() == 4;
      const Tensor expected = by_nodes ? averaged_by_nodes(inputs, premultiply)
                                       : summed(inputs, premultiply, 1.0f / static_cast<float>(size()));

      const Tensor tensor = buffer(count, dtype);
      fill(tensor, [&](std::int64_t i) { return random(rank(), i); });
      group().all_reduce(tensor, ReduceOp::kAverage, 0.3f + 0.1f * static_cast<float>(rank()), stream());
      EXPECT_EQ(std::memcmp(tensor.data(), expected.data(), tensor.bytes()), 0)
          << count << " " << lockstep::name_of(dtype);
    }
  }
}

TEST_P(Collectives, ASumOfManyPiecesIsWhole) {
  constexpr std::int64_t kCount = 900007;
  const Tensor tensor = zeros({kCount}, DType::kFloat32);
  fill(tensor, [&](std::int64_t i) { return static_cast<double>(rank() + 1) * static_cast<double>(i % 1009); });
  group().all_reduce(tensor, ReduceOp::kSum, 1.0f, stream());
  const int ranks = size() * (size() + 1) / 2;
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < kCount; ++i) wrong += tensor.item(i) == static_cast<double>(ranks * (i % 1009)) ? 0 : 1;
  EXPECT_EQ(wrong, 0);
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

/// However the ranks lie on nodes, a result is the exact one but for one rounding to 16 bits and those of float32.
TEST_P(Collectives, SumsOf16BitsAreRoundedOnce) {
  if (is_nccl()) GTEST_SKIP() << "NCCL rounds on the way";
  const auto value = [](int r, std::int64_t i) {
    const double sine = std::sin(static_cast<double>(i * 7919 % 10007 + r * 131));
    return static_cast<double>(static_cast<float>(Half(static_cast<float>(2.0 + sine))));
  };
  for (const std::int64_t count : {std::int64_t{301}, std::int64_t{20011}}) {
    const Tensor tensor = buffer(count, DType::kFloat16);
    fill(tensor, [&](std::int64_t i) { return value(rank(), i); });
    group().all_reduce(tensor, ReduceOp::kAverage, 1.0f, stream());
    double worst = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      double exact = 0;
      for (int r = 0; r < size(); ++r) exact += value(r, i) / size();
      const double ulp = std::exp2(std::floor(std::log2(exact)) - 10);
      worst = std::max(worst, std::abs(tensor.item(i) - exact) / ulp);
    }
    EXPECT_LE(worst, 0.5 + 1e-3) << "units in the last place, " << count << " elements";
  }
}

TEST_P(Collectives, SumsOf16BitsThatOverflowOnOneNodeAloneAreFinite) {
  if (is_nccl()) GTEST_SKIP() << "NCCL rounds on the way";
  for (const std::int64_t count : {std::int64_t{5}, std::int64_t{40000}}) {
    const Tensor tensor = buffer(count, DType::kFloat16);
    fill(tensor, [&](std::int64_t) { return 2 * rank() < size() ? 60000.0 : -60000.0; });
    group().all_reduce(tensor, ReduceOp::kSum, 1.0f, stream());
    if (size() % 2 == 0) expect_all(tensor, 0.0);
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

}  // namespace
}  // namespace lockstep::comm
