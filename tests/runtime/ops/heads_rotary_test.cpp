// SPDX-License-Identifier: Apache-2.0
// Heads and rotary positions.
#include <gmock/gmock.h>

#include <cmath>
#include <numbers>

#include "amp/autocast/autocast.h"
#include "runtime/base/error.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using kernels::testing::values_of;
using ops::testing::kAllTypes;
using ops::testing::name_of_on;
using ::testing::DoubleEq;
using ::testing::ElementsAre;

class TransformerTest : public ops::testing::OperationTest {};
INSTANTIATE_TEST_SUITE_P(On, TransformerTest, kAllTypes, name_of_on);

TEST_P(TransformerTest, SplitHeads) {
  for (const Shape& shape : {Shape{2, 3, 12}, Shape{1, 1, 12}, Shape{0, 3, 12}, Shape{2, 0, 12}}) {
    for (std::size_t part = 0; part < 3; ++part) {
      check([part](const auto& in) { return split_heads(in[0], {3, 1, 2}, 2)[part]; }, {random(shape, 1)});
    }
    check(
        [](const auto& in) {
          const std::vector<Tensor> parts = split_heads(in[0], {3, 3}, 2);
          return mul(parts[0], parts[1]);
        },
        {random(shape, 1)});
  }
}

TEST_P(TransformerTest, JoinHeads) {
  for (const auto& [samples, length] : {std::pair{2, 3}, {1, 1}, {0, 3}, {2, 0}}) {
    check(
        [](const auto& in) {
          return join_heads({in[0], in[1]});
        },
        {random({samples, 3, length, 2}, 1), random({samples, 1, length, 2}, 2)});
  }
}

TEST_P(TransformerTest, JoinedHeadsAreWhatWasSplit) {
  const Tensor x = random({2, 5, 12}, 1).to(device());
  const std::vector<Tensor> parts = split_heads(x, {1, 2, 1}, 3);
  EXPECT_EQ(parts[1].shape(), (Shape{2, 2, 5, 3}));
  EXPECT_EQ(parts[1].to(kCpu).item(3), x.to(kCpu).item(12 + 3));  // sample 0, head 1, position 1, channel 0
  EXPECT_EQ(values_of(join_heads(parts)), values_of(x));
}

RotaryTable table_for(const Tensor& x, double theta = 100) {
  const RotaryTable table = rotary_table(x.size(-2), x.size(-1), theta, wide_of(x.dtype()));
  return {table.cos.to(x.device()), table.sin.to(x.device())};
}

TEST_P(TransformerTest, Rotary) {
  for (const Shape& shape : {Shape{2, 3, 5, 4}, Shape{1, 2}, Shape{3, 1, 6}, Shape{2, 0, 4}, Shape{0, 3, 8}}) {
    check([](const auto& in) { return rotary(in[0], table_for(in[0])); }, {random(shape, 1)},
          {.terms = 2, .magnitude = 1});
  }
}

TEST_P(TransformerTest, RotaryTurnsEachPairOfHalvesByItsAngle) {
  const Tensor x = random({3, 4}, 1);
  const std::vector<double> in = values_of(x), out = values_of(rotary(x.to(device()), table_for(x.to(device()))));
  const double accuracy = 4 * kernels::testing::epsilon_of(dtype());
  for (std::size_t t = 0; t < 3; ++t) {
    for (std::size_t i = 0; i < 2; ++i) {
      const double angle = static_cast<double>(t) * std::pow(100.0, -static_cast<double>(i) / 2);
      const double a = in[4 * t + i], b = in[4 * t + i + 2];
      EXPECT_NEAR(out[4 * t + i], a * std::cos(angle) - b * std::sin(angle), accuracy);
      EXPECT_NEAR(out[4 * t + i + 2], b * std::cos(angle) + a * std::sin(angle), accuracy);
    }
  }
}

TEST(Transformer, ScalingSlowsTheFrequenciesThatItNames) {
  EXPECT_THAT(rotary_frequencies(4, 100), ElementsAre(DoubleEq(1), DoubleEq(0.1)));
  const RotaryScaling linear{.kind = RotaryScalingKind::kLinear, .factor = 4};
  EXPECT_THAT(rotary_frequencies(4, 100, linear), ElementsAre(DoubleEq(0.25), DoubleEq(0.025)));
  // Within 64 positions the waves of 1, 0.1 and 0.01 go round 10.2, 1.02 and 0.1 times.
  const RotaryScaling llama3{.factor = 8, .low_freq_factor = 0.5, .high_freq_factor = 4, .original_context = 64};
  const std::vector<double> found = rotary_frequencies(6, 1000, llama3);
  const double share = (6.4 / (2 * std::numbers::pi) - 0.5) / 3.5;
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0], 1);
  EXPECT_NEAR(found[1], share * 0.1 + (1 - share) * 0.1 / 8, 1e-15);
  EXPECT_NEAR(found[2], 0.01 / 8, 1e-15);
}

TEST(Transformer, OperationsStayInTheDtypeThatComesInUnderAutocast) {
  const amp::Autocast autocast(DType::kBFloat16);
  for (const DType dtype : {DType::kFloat32, DType::kFloat16}) {
    const Tensor x = kernels::testing::random_tensor({2, 3, 4}, dtype, 1);
    EXPECT_EQ(rotary(x, table_for(x)).dtype(), dtype);
    EXPECT_EQ(join_heads(split_heads(x, {1, 1}, 2)).dtype(), dtype);
  }
}

TEST(Transformer, RefusesWhatDoesNotFit) {
  const Tensor x = Tensor::zeros({2, 3, 4}, DType::kFloat32);
  EXPECT_THROW(split_heads(x, {1, 1}, 3), ShapeError);
  EXPECT_THROW(split_heads(x, {3, -1}, 2), ShapeError);
  EXPECT_THROW(split_heads(x, {}, 4), ShapeError);
  EXPECT_THROW(split_heads(Tensor::zeros({3, 4}, DType::kFloat32), {1}, 4), ShapeError);
  EXPECT_THROW(join_heads({}), UsageError);
  EXPECT_THROW(join_heads({Tensor::zeros({2, 1, 3, 4}, DType::kFloat32), Tensor::zeros({2, 1, 2, 4}, DType::kFloat32)}),
               ShapeError);
  EXPECT_THROW(rotary_table(3, 5, 100), UsageError);
  EXPECT_THROW(rotary_table(3, 4, 0), UsageError);
  EXPECT_THROW(rotary(x, rotary_table(2, 4, 100)), ShapeError);
  EXPECT_THROW(rotary(x, rotary_table(3, 4, 100, DType::kFloat64)), ShapeError);
}

}  // namespace
}  // namespace lockstep::ops
