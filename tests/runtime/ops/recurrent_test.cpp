// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/recurrent.h"

#include <gtest/gtest.h>

#include "amp/autocast/autocast.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using kernels::testing::random_tensor;
using ops::testing::kAllTypes;
using ops::testing::name_of_on;
using ops::testing::OperationTest;

using RecurrentOperations = OperationTest;
INSTANTIATE_TEST_SUITE_P(On, RecurrentOperations, kAllTypes, name_of_on);

TEST_P(RecurrentOperations, Cells) {
  for (const std::int64_t rows : {3, 1, 0}) {
    const Tensor x = random({rows, 3}, 1), h = random({rows, 4}, 2), c = random({rows, 4}, 3);
    const auto inputs = [&](std::int64_t gates) {
      return std::vector{x,
                         h,
                         c,
                         random({gates * 4, 3}, 4),
                         random({gates * 4, 4}, 5),
                         random({gates * 4}, 6),
                         random({gates * 4}, 7)};
    };
    // Chains of 16-bit operations, as PyTorch's.
    const ops::testing::Accuracy accuracy{.terms = 16, .intermediate = 2, .intermediate_of_result = 1};
    // The other cells have no c: it is added, so that each input has a gradient.
    check(
        [](const auto& in) {
          return add(rnn_cell(in[0], in[1], {in[3], in[4], in[5], in[6]}), in[2]);
        },
        inputs(1), accuracy);
    check(
        [](const auto& in) {
          return add(gru_cell(in[0], in[1], {in[3], in[4], in[5], in[6]}), in[2]);
        },
        inputs(3), accuracy);
    check(
        [](const auto& in) {
          const LstmState state = lstm_cell(in[0], {in[1], in[2]}, {in[3], in[4], in[5], in[6]});
          return add(state.h, state.c);
        },
        inputs(4), accuracy);
  }
}

TEST(Recurrent, SecondGradients) {
  const auto random = [](const Shape& shape, std::uint32_t seed) {
    return random_tensor(shape, DType::kFloat64, seed);
  };
  const std::vector<Tensor> gru{random({2, 2}, 1), random({2, 2}, 2), random({6, 2}, 3), random({6, 2}, 4)};
  lockstep::testing::expect_second_gradients(
      [](const auto& in) {
        return gru_cell(in[0], in[1], {in[2], in[3], {}, {}});
      },
      gru);
  const std::vector<Tensor> lstm{random({2, 2}, 1), random({2, 2}, 2), random({8, 2}, 3), random({8, 2}, 4)};
  lockstep::testing::expect_second_gradients(
      [](const auto& in) {
        return lstm_cell(in[0], {in[1], in[1]}, {in[2], in[3], {}, {}}).h;
      },
      lstm);
}

TEST(Recurrent, CellsRunInTheComputeDtypeUnderAutocast) {
  const Tensor x = random_tensor({2, 3}, DType::kFloat32, 1), h = random_tensor({2, 4}, DType::kFloat32, 2);
  const amp::Autocast autocast(DType::kBFloat16);
  const auto with = [](std::int64_t gates) {
    return CellParameters{
        random_tensor({gates * 4, 3}, DType::kFloat32, 3), random_tensor({gates * 4, 4}, DType::kFloat32, 4), {}, {}};
  };
  EXPECT_EQ(rnn_cell(x, h, with(1)).dtype(), DType::kBFloat16);
  EXPECT_EQ(gru_cell(x, h, with(3)).dtype(), DType::kBFloat16);
  EXPECT_EQ(lstm_cell(x, {h, h}, with(4)).c.dtype(), DType::kBFloat16);
}

TEST(Recurrent, RefusesWhatDoesNotFit) {
  const auto zeros = [](const Shape& shape) { return Tensor::zeros(shape, DType::kFloat32); };
  const CellParameters lstm{zeros({16, 3}), zeros({16, 4}), {}, {}};
  EXPECT_THROW(lstm_cell(zeros({2, 3}), {zeros({3, 4}), zeros({3, 4})}, lstm), ShapeError);
  EXPECT_THROW(lstm_cell(zeros({2, 3}), {zeros({2, 4}), zeros({2, 5})}, lstm), ShapeError);
  EXPECT_THROW(lstm_cell(zeros({2, 2}), {zeros({2, 4}), zeros({2, 4})}, lstm), ShapeError);
  EXPECT_THROW(gru_cell(zeros({2, 3}), zeros({2, 4}), lstm), ShapeError);
}

}  // namespace
}  // namespace lockstep::ops
