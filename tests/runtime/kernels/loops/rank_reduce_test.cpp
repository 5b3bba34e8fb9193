// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/rank_reduce.h"

#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

using namespace testing;

std::vector<const void*> pointers(const std::vector<Tensor>& tensors) {
  std::vector<const void*> all;
  for (const Tensor& tensor : tensors) all.push_back(tensor.data());
  return all;
}

/// Every rank receives the result in place of its own elements.
void reduce_in_place(RankReduction reduction, const std::vector<Tensor>& ranks, const std::vector<float>& premultiply,
                     double factor) {
  std::vector<void*> outputs;
  for (const Tensor& tensor : ranks) outputs.push_back(tensor.data());
  rank_reduce(reduction, ranks[0].dtype(), ranks[0].numel(), pointers(ranks), premultiply, factor, outputs);
}

std::string dtype_name(const ::testing::TestParamInfo<DType>& dtype) { return std::string(name_of(dtype.param)); }

class RankReduce : public ::testing::TestWithParam<DType> {};
class RankReduceOfFloats : public RankReduce {};

INSTANTIATE_TEST_SUITE_P(, RankReduce,
                         ::testing::Values(DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64,
                                           DType::kInt32, DType::kInt64),
                         dtype_name);
INSTANTIATE_TEST_SUITE_P(, RankReduceOfFloats,
                         ::testing::Values(DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64),
                         dtype_name);

TEST_P(RankReduce, SumsWholeNumbersExactlyForAnyNumberOfRanks) {
  for (const std::int64_t n : kLengths) {
    for (int count = 1; count <= 9; ++count) {
      std::vector<Tensor> ranks;
      std::vector<double> expected(static_cast<std::size_t>(n), 0.0);
      for (int r = 0; r < count; ++r) {
        std::vector<double> values(expected.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = static_cast<double>((i * 7 + static_cast<std::size_t>(r) * 3) % 13) - 6;
          expected[i] += values[i];
        }
        ranks.push_back(tensor_of(values, {n}, GetParam()));
      }
      reduce_in_place(RankReduction::kSum, ranks, std::vector(ranks.size(), 1.0f), 1);
      for (const Tensor& rank : ranks) expect_close(rank, expected, {});
    }
  }
}

TEST_P(RankReduce, TakesTheMaximum) {
  const std::vector<Tensor> ranks{tensor_of({-5, 2, 3}, {3}, GetParam()), tensor_of({-4, -9, 3}, {3}, GetParam()),
                                  tensor_of({-7, 1, 8}, {3}, GetParam())};
  reduce_in_place(RankReduction::kMax, ranks, {1, 1, 1}, 1);
  for (const Tensor& rank : ranks) expect_close(rank, {-4, 2, 8}, {});
}

TEST_P(RankReduce, WeighsFloatingRanksAndIgnoresFactorsOfIntegers) {
  const std::vector<Tensor> ranks{tensor_of({8, 16}, {2}, GetParam()), tensor_of({4, 64}, {2}, GetParam())};
  reduce_in_place(RankReduction::kSum, ranks, {0.5f, 0.25f}, 2);
  const std::vector<double> expected =
      is_floating(GetParam()) ? std::vector<double>{10, 48} : std::vector<double>{12, 80};
  for (const Tensor& rank : ranks) expect_close(rank, expected, {});
}

TEST_P(RankReduceOfFloats, NaNOfAnyRankWins) {
  for (const RankReduction reduction : {RankReduction::kSum, RankReduction::kMax}) {
    for (std::size_t bad = 0; bad < 3; ++bad) {
      std::vector<Tensor> ranks;
      for (std::size_t r = 0; r < 3; ++r) {
        std::vector<double> values(40, 1.0);
        if (r == bad) values[17] = values[39] = kNaN;
        ranks.push_back(tensor_of(values, {40}, GetParam()));
      }
      reduce_in_place(reduction, ranks, {1, 1, 1}, 1);
      EXPECT_TRUE(std::isnan(ranks[0].item(17)) && std::isnan(ranks[2].item(39)));
      EXPECT_FALSE(std::isnan(ranks[0].item(16)));
    }
  }
}

TEST(RankReduceOfDouble, AveragesInDoublePrecision) {
  const std::vector<Tensor> ranks(3, tensor_of({1.0}, {1}, DType::kFloat64));
  reduce_in_place(RankReduction::kSum, ranks, {1, 1, 1}, 1.0 / 3);
  EXPECT_DOUBLE_EQ(ranks[0].item(), 1.0);
}

TEST(RankReduceOfHalf, DoesNotOverflowOnTheWay) {
  // 60000 + 60000 - 60000 passes the largest float16, 65504.
  std::vector<Tensor> ranks;
  for (const double value : {60000.0, 60000.0, -60000.0}) ranks.push_back(tensor_of({value}, {1}, DType::kFloat16));
  reduce_in_place(RankReduction::kSum, ranks, {1, 1, 1}, 1);
  EXPECT_EQ(ranks[0].item(), tensor_of({60000}, {1}, DType::kFloat16).item());
}

TEST(RankReduceOfHalf, OverflowBecomesInfinity) {
  const std::vector<Tensor> ranks{tensor_of({60000}, {1}, DType::kFloat16), tensor_of({60000}, {1}, DType::kFloat16)};
  reduce_in_place(RankReduction::kSum, ranks, {1, 1}, 1);
  EXPECT_EQ(ranks[1].item(), kInfinity);
}

TEST(RankReduceArguments, AreRefusedWithAName) {
  const std::vector<Tensor> bytes{Tensor::zeros({4}, DType::kUInt8)};
  EXPECT_THROW(reduce_in_place(RankReduction::kSum, bytes, {1}, 1), ShapeError);
  const std::vector<Tensor> floats{Tensor::zeros({4}, DType::kFloat32)};
  EXPECT_THROW(reduce_in_place(RankReduction::kSum, floats, {1, 1}, 1), ShapeError);
}

}  // namespace
}  // namespace lockstep::kernels
