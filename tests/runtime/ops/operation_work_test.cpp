// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/operation_work.h"

#include <gtest/gtest.h>

namespace lockstep::ops {
namespace {

Tensor shaped(const Shape& shape, bool requires_grad = true, DType dtype = DType::kFloat32) {
  const Tensor tensor = Tensor::zeros(shape, dtype);
  if (requires_grad) tensor.set_requires_grad(true);
  return tensor;
}

TEST(OperationWork, ALinearLayerIsOneProductAndEachGradientAnother) {
  const Tensor x = shaped({6, 5}, false), weight = shaped({3, 5}), bias = shaped({3}), y = shaped({6, 3});
  EXPECT_EQ(forward_work("linear", {y}, {x, weight, bias}).operations, 2 * 6 * 5 * 3);
  // The data need no gradient.
  EXPECT_EQ(backward_work("linear", {y}, {x, weight, bias}).operations, 2 * 6 * 5 * 3);
  EXPECT_EQ(backward_work("linear", {y}, {shaped({6, 5}), weight, bias}).operations, 2 * 2 * 6 * 5 * 3);
  EXPECT_EQ(forward_work("linear", {y}, {x, weight, {}}).bytes, 4 * (6 * 5 + 3 * 5 + 6 * 3));
}

TEST(OperationWork, AMatmulMayTransposeAndMayHaveAVector) {
  for (const Shape& a : {Shape{2, 6, 5}, Shape{2, 5, 6}}) {
    EXPECT_EQ(forward_work("matmul", {shaped({2, 6, 3})}, {shaped(a), shaped({2, 5, 3})}).operations,
              2 * 2 * 6 * 5 * 3);
  }
  EXPECT_EQ(forward_work("matmul", {shaped({6})}, {shaped({6, 5}), shaped({5})}).operations, 2 * 6 * 5);
}

TEST(OperationWork, AConvolutionCountsItsTapsAndGroups) {
  const Tensor x = shaped({2, 8, 8, 4}), weight = shaped({16, 3, 3, 4}), y = shaped({2, 4, 4, 16});
  EXPECT_EQ(forward_work("conv", {y}, {x, weight, {}}).operations, 2.0 * 2 * 4 * 4 * 16 * 9 * 4);
  EXPECT_EQ(backward_work("conv", {y}, {x, weight, {}}).operations, 2 * 2.0 * 2 * 4 * 4 * 16 * 9 * 4);
  EXPECT_EQ(forward_work("conv", {y}, {x, shaped({16, 3, 3, 1}), {}}).operations, 2.0 * 2 * 4 * 4 * 16 * 9);
  EXPECT_EQ(forward_work("conv_transpose", {x}, {y, weight, {}}).operations, 2.0 * 2 * 4 * 4 * 16 * 9 * 4);
  EXPECT_EQ(forward_work("conv_weight_gradient", {weight}, {x, y}).operations, 2.0 * 2 * 4 * 4 * 16 * 9 * 4);
}

TEST(OperationWork, AttentionIsScoresAndTheirSum) {
  const Tensor q = shaped({2, 3, 7, 4}), k = shaped({2, 3, 9, 4}), v = shaped({2, 3, 9, 5}), y = shaped({2, 3, 7, 5});
  const double scores = 2 * 3 * 7 * 9;
  EXPECT_EQ(forward_work("scaled_dot_product_attention", {y}, {q, k, v}).operations, 2 * scores * (4 + 5));
  EXPECT_DOUBLE_EQ(backward_work("scaled_dot_product_attention", {y}, {q, k, v}).operations, 5 * scores * (4 + 5));
  // Three heads of queries and one of keys and values, in sequences of 7.
  const Tensor packed = shaped({2, 7, 5 * 4}), joined = shaped({2, 7, 3 * 4});
  const double of_packed = 2 * 3 * 7 * 7;
  EXPECT_EQ(forward_work("packed_attention", {joined}, {packed}).operations, 2 * of_packed * (4 + 4));
  EXPECT_DOUBLE_EQ(backward_work("packed_attention", {joined}, {packed}).operations, 5 * of_packed * (4 + 4));
}

TEST(OperationWork, OthersHaveBytesAlone) {
  const Tensor x = shaped({6, 5}, true, DType::kFloat16), y = shaped({6, 5}, true, DType::kFloat16);
  EXPECT_EQ(forward_work("relu", {y}, {x}).operations, 0);
  EXPECT_EQ(forward_work("relu", {y}, {x}).bytes, 2 * 2 * 30);
  EXPECT_EQ(backward_work("relu", {y}, {x}).bytes, 3 * 2 * 30);
  EXPECT_EQ(backward_work("linear", {}, {}).operations, 0);
}

}  // namespace
}  // namespace lockstep::ops
