// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/matmul.h"

#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "runtime/kernels/reductions.h"
#include "tests/runtime/kernels/tables.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::kernels {
namespace {

using testing::reference_of;
using testing::tensor_of;
using testing::values_of;

Tensor factor(const std::vector<double>& values, const Shape& shape) { return Tensor::from(values, shape); }

TEST(ReferenceReductions, SumsElementsAndRows) {
  const Tensor x = factor({1, 2, 3, 4, 5, 6}, {2, 1, 3});
  const Tensor total = Tensor::empty({}, DType::kFloat64);
  reference_of<Reductions>().sum(x, 0.5, total);
  EXPECT_EQ(total.item(), 10.5);
  const Tensor sums = factor({100, 100, 100}, {3});
  reference_of<Reductions>().sum_rows(x, true, sums);
  EXPECT_EQ(values_of(sums), (std::vector<double>{105, 107, 109}));
  reference_of<Reductions>().sum_rows(x, false, sums);
  EXPECT_EQ(values_of(sums), (std::vector<double>{5, 7, 9}));
}

TEST(ReferenceReductions, TheSumOfNothingIsZero) {
  const Tensor total = factor({3}, {});
  reference_of<Reductions>().sum(Tensor::empty({0, 2}, DType::kFloat64), 1, total);
  EXPECT_EQ(total.item(), 0);
  const Tensor sums = factor({3, 3}, {2});
  reference_of<Reductions>().sum_rows(Tensor::empty({0, 2}, DType::kFloat64), false, sums);
  EXPECT_EQ(values_of(sums), (std::vector<double>{0, 0}));
  EXPECT_THROW(reference_of<Reductions>().sum_rows(Tensor::empty({0, 2}, DType::kFloat64), false, total), ShapeError);
}

// [1 2 3; 4 5 6] [1 2; 3 4; 5 6] = [22 28; 49 64]
const std::vector<double> kA = {1, 2, 3, 4, 5, 6};
const std::vector<double> kATransposed = {1, 4, 2, 5, 3, 6};
const std::vector<double> kB = {1, 2, 3, 4, 5, 6};
const std::vector<double> kBTransposed = {1, 3, 5, 2, 4, 6};

TEST(ReferenceMatmul, TransposesWhatItIsAskedTo) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      const Tensor a = transpose_a ? factor(kATransposed, {3, 2}) : factor(kA, {2, 3});
      const Tensor b = transpose_b ? factor(kBTransposed, {2, 3}) : factor(kB, {3, 2});
      const Tensor out = Tensor::empty({2, 2}, DType::kFloat64);
      reference_of<MatrixProducts>().matmul(a, transpose_a, b, transpose_b, {}, false, out);
      EXPECT_EQ(values_of(out), (std::vector<double>{22, 28, 49, 64})) << transpose_a << transpose_b;
    }
  }
}

TEST(ReferenceMatmul, AddsBiasAndWhatIsThere) {
  const Tensor out = factor({1000, 1000, 1000, 1000}, {2, 2});
  reference_of<MatrixProducts>().matmul(factor(kA, {2, 3}), false, factor(kB, {3, 2}), false, factor({100, 200}, {2}),
                                        true, out);
  EXPECT_EQ(values_of(out), (std::vector<double>{1122, 1228, 1149, 1264}));
}

TEST(ReferenceMatmul, MultipliesBatches) {
  const Tensor out = Tensor::empty({2, 1, 1}, DType::kFloat64);
  reference_of<MatrixProducts>().matmul(factor({1, 2, 3, 4}, {2, 1, 2}), false, factor({5, 6, 7, 8}, {2, 2, 1}), false,
                                        {}, false, out);
  EXPECT_EQ(values_of(out), (std::vector<double>{17, 53}));
}

TEST(ReferenceMatmul, WritesFloat32FromSixteenBits) {
  const Tensor out = Tensor::empty({1, 1}, DType::kFloat32);
  reference_of<MatrixProducts>().matmul(tensor_of({2048, 1}, {1, 2}, DType::kFloat16), false,
                                        tensor_of({1, 1}, {2, 1}, DType::kFloat16), false, {}, false, out);
  EXPECT_EQ(out.item(), 2049);  // no half
}

TEST(ReferenceMatmul, AnEmptySumIsTheBias) {
  const Tensor out = factor({9, 9}, {1, 2});
  reference_of<MatrixProducts>().matmul(Tensor::empty({1, 0}, DType::kFloat64), false,
                                        Tensor::empty({0, 2}, DType::kFloat64), false, factor({1, 2}, {2}), false, out);
  EXPECT_EQ(values_of(out), (std::vector<double>{1, 2}));
}

TEST(ReferenceMatmul, WhatDoesNotFitIsRefused) {
  const auto multiply = [](const Shape& a, const Shape& b, const Shape& out, const Tensor& bias = {}) {
    reference_of<MatrixProducts>().matmul(Tensor::zeros(a, DType::kFloat64), false, Tensor::zeros(b, DType::kFloat64),
                                          false, bias, false, Tensor::zeros(out, DType::kFloat64));
  };
  EXPECT_NO_THROW(multiply({2, 3}, {3, 4}, {2, 4}));
  EXPECT_THROW(multiply({2, 3}, {4, 3}, {2, 4}), ShapeError);
  EXPECT_THROW(multiply({2, 3}, {3, 4}, {4, 2}), ShapeError);
  EXPECT_THROW(multiply({3}, {3, 4}, {4}), ShapeError);
  EXPECT_THROW(multiply({2, 2, 3}, {3, 4}, {2, 2, 4}), ShapeError);
  EXPECT_THROW(multiply({2, 2, 3}, {1, 3, 4}, {2, 2, 4}), ShapeError);
  EXPECT_THROW(multiply({2, 3}, {3, 4}, {2, 4}, Tensor::zeros({2}, DType::kFloat64)), ShapeError);
  EXPECT_THROW(reference_of<MatrixProducts>().matmul(Tensor::zeros({1, 1}, DType::kFloat16), false,
                                                     Tensor::zeros({1, 1}, DType::kFloat16), false, {}, false,
                                                     Tensor::zeros({1, 1}, DType::kBFloat16)),
               ShapeError);
}

TEST(ReferenceMatmul, PassesThroughItsEpilogue) {
  Epilogue forward(factor({-30, 1}, {2}));
  forward.activation = Activation::kRelu;
  forward.preactivation = Tensor::empty({2, 2}, DType::kFloat64);
  const Tensor out = Tensor::empty({2, 2}, DType::kFloat64);
  reference_of<MatrixProducts>().matmul(factor(kA, {2, 3}), false, factor(kB, {3, 2}), false, forward, false, out);
  EXPECT_EQ(values_of(forward.preactivation), (std::vector<double>{-8, 29, 19, 65}));
  EXPECT_EQ(values_of(out), (std::vector<double>{0, 29, 19, 65}));

  Epilogue backward;
  backward.derivative = Activation::kRelu;
  backward.derivative_at = out;
  backward.bias_gradient = factor({100, 200}, {2});
  backward.accumulate_bias_gradient = true;
  const Tensor gradient = Tensor::empty({2, 2}, DType::kFloat64);
  reference_of<MatrixProducts>().matmul(factor(kATransposed, {3, 2}), true, factor(kB, {3, 2}), false, backward, false,
                                        gradient);
  EXPECT_EQ(values_of(gradient), (std::vector<double>{0, 28, 49, 64}));
  EXPECT_EQ(values_of(backward.bias_gradient), (std::vector<double>{106, 215}));
}

TEST(ReferenceMatmul, AnEpilogueThatDoesNotFitIsRefused) {
  const auto multiply = [](const Epilogue& epilogue, bool transpose_a = false, bool accumulate = false) {
    reference_of<MatrixProducts>().matmul(Tensor::zeros({2, 2}, DType::kFloat64), transpose_a,
                                          Tensor::zeros({2, 2}, DType::kFloat64), false, epilogue, accumulate,
                                          Tensor::zeros({2, 2}, DType::kFloat64));
  };
  const Tensor square = Tensor::zeros({2, 2}, DType::kFloat64), vector = Tensor::zeros({2}, DType::kFloat64);
  Epilogue relu;
  relu.activation = Activation::kRelu;
  EXPECT_NO_THROW(multiply(relu));
  EXPECT_THROW(multiply(relu, false, true), ShapeError) << "with accumulate";
  relu.preactivation = vector;
  EXPECT_THROW(multiply(relu), ShapeError);

  Epilogue unasked;
  unasked.preactivation = square;
  EXPECT_THROW(multiply(unasked), ShapeError);

  Epilogue derivative;
  derivative.derivative = Activation::kGelu;
  EXPECT_THROW(multiply(derivative), ShapeError) << "at nothing";
  derivative.derivative_at = square;
  EXPECT_NO_THROW(multiply(derivative));
  EXPECT_THROW(multiply(derivative, false, true), ShapeError) << "with accumulate";
  derivative.bias = vector;
  EXPECT_THROW(multiply(derivative), ShapeError) << "with a bias";
  derivative.bias = {};
  derivative.activation = Activation::kRelu;
  EXPECT_THROW(multiply(derivative), ShapeError) << "with an activation";

  Epilogue gradient;
  gradient.bias_gradient = vector;
  EXPECT_NO_THROW(multiply(gradient, true));
  EXPECT_THROW(multiply(gradient), ShapeError) << "of what is not transposed";
  gradient.bias_gradient = square;
  EXPECT_THROW(multiply(gradient, true), ShapeError);
}

}  // namespace
}  // namespace lockstep::kernels
