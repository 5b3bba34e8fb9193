// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "runtime/tensor/device_value.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using ops::testing::kAllTypes;
using ops::testing::name_of_on;
using ops::testing::OperationTest;

INSTANTIATE_TEST_SUITE_P(On, OperationTest, kAllTypes, name_of_on);

/// Batches that any operation must take: several rows, one, none.
constexpr std::int64_t kRowCounts[] = {5, 1, 0};

kernels::ConvGeometry conv_geometry(int rank, std::int64_t stride, std::int64_t padding, std::int64_t dilation,
                                    std::int64_t groups) {
  kernels::ConvGeometry geometry;
  geometry.spatial_rank = rank;
  geometry.stride.fill(stride);
  geometry.padding.fill(padding);
  geometry.dilation.fill(dilation);
  geometry.groups = groups;
  return geometry;
}

kernels::PoolGeometry pool_geometry(kernels::PoolKind kind, int rank, std::int64_t window, std::int64_t stride,
                                    std::int64_t padding, bool count_include_pad = true) {
  kernels::PoolGeometry geometry;
  geometry.kind = kind;
  geometry.spatial_rank = rank;
  geometry.window.fill(window);
  geometry.stride.fill(stride);
  geometry.padding.fill(padding);
  geometry.count_include_pad = count_include_pad;
  return geometry;
}

TEST_P(OperationTest, Linear) {
  for (const std::int64_t rows : kRowCounts) {
    const Tensor x = random({rows, 7}, 1), weight = random({6, 7}, 2), bias = random({6}, 3);
    check([](const auto& in) { return linear(in[0], in[1], in[2]); }, {x, weight, bias}, {.terms = 8});
    check([](const auto& in) { return linear(in[0], in[1], {}); }, {x, weight}, {.terms = 8});
  }
}

TEST_P(OperationTest, LinearOnSequences) {
  check([](const auto& in) { return linear(in[0], in[1], in[2]); },
        {random({2, 3, 4}, 1), random({5, 4}, 2), random({5}, 3)}, {.terms = 6});
  check([](const auto& in) { return linear(in[0], in[1], in[2]); }, {random({4}, 1), random({5, 4}, 2), random({5}, 3)},
        {.terms = 6});
}

constexpr kernels::Activation kActivations[] = {kernels::Activation::kRelu, kernels::Activation::kGelu,
                                                kernels::Activation::kGeluTanh, kernels::Activation::kTanh,
                                                kernels::Activation::kSigmoid};

TEST_P(OperationTest, LinearWithAnActivation) {
  for (const kernels::Activation activation : kActivations) {
    SCOPED_TRACE(static_cast<int>(activation));
    for (const std::int64_t rows : kRowCounts) {
      const Tensor x = random({rows, 7}, 1), weight = random({6, 7}, 2), bias = random({6}, 3);
      // As of two operations, z, from which the derivative is taken, and dz are rounded: products read 16-bit operands.
      check([activation](const auto& in) { return linear(in[0], in[1], in[2], activation); }, {x, weight, bias},
            {.terms = 8, .intermediate = 1.5});
      check([activation](const auto& in) { return linear(in[0], in[1], {}, activation); }, {x, weight},
            {.terms = 8, .intermediate = 1.5});
    }
  }
}

TEST_P(OperationTest, LinearLayersInARow) {
  for (const kernels::Activation activation : kActivations) {
    SCOPED_TRACE(static_cast<int>(activation));
    for (const std::int64_t rows : kRowCounts) {
      const Tensor x = random({rows, 2, 4}, 1), w0 = random({6, 4}, 2), b0 = random({6}, 3), w1 = random({5, 6}, 4),
                   b1 = random({5}, 5), w2 = random({3, 5}, 6);
      // A chain: each layer's result and gradient are rounded.
      check(
          [activation](const auto& in) {
            return linear(linear(linear(in[0], in[1], in[2], activation), in[3], in[4], activation), in[5], {});
          },
          {x, w0, b0, w1, b1, w2}, {.terms = 10, .intermediate = 3, .intermediate_of_result = 0.75});
    }
  }
}

TEST_P(OperationTest, LinearBehindAnActivationOfItsOwn) {
  const Tensor x = random({5, 7}, 1, -3, 3), weight = random({6, 7}, 2);
  // A chain of two operations.
  for (const auto& activation : {&relu, &gelu, &gelu_tanh, &tanh, &sigmoid}) {
    check([activation](const auto& in) { return linear(activation(in[0]), in[1], {}); }, {x, weight},
          {.terms = 7, .intermediate = 2, .intermediate_of_result = 0.5});
  }
}

TEST_P(OperationTest, LinearWhoseResultIsUsedTwice) {
  const Tensor x = random({5, 7}, 1), weight = random({7, 7}, 2);
  for (const kernels::Activation activation : kActivations) {
    // A chain, and y's gradients are rounded before they are added. A GPU rounds a product before it is activated.
    check(
        [activation](const auto& in) {
          const Tensor y = linear(in[0], in[1], {}, activation);
          return add(linear(y, in[1], {}, activation), y);
        },
        {x, weight}, {.terms = 7, .intermediate = 4, .intermediate_of_result = 0.75});
  }
}

TEST_P(OperationTest, Matmul) {
  for (const std::int64_t rows : kRowCounts) {
    check([](const auto& in) { return matmul(in[0], in[1]); }, {random({rows, 4}, 1), random({4, 3}, 2)}, {.terms = 5});
    check([](const auto& in) { return matmul(in[0], in[1]); }, {random({rows, 2, 4}, 1), random({rows, 4, 3}, 2)},
          {.terms = 4});
  }
}

TEST_P(OperationTest, MatmulOfAMatrixWithItself) {
  // Both gradients are rounded before they are added.
  check([](const auto& in) { return matmul(in[0], in[0]); }, {random({4, 4}, 1)}, {.terms = 8, .intermediate = 0.25});
}

TEST_P(OperationTest, Conv1d) {
  for (const std::int64_t rows : kRowCounts) {
    check([](const auto& in) { return conv(in[0], in[1], in[2], conv_geometry(1, 2, 1, 1, 1)); },
          {random({rows, 7, 3}, 1), random({4, 3, 3}, 2), random({4}, 3)}, {.terms = 20});
  }
}

TEST_P(OperationTest, Conv2d) {
  for (const std::int64_t rows : kRowCounts) {
    check([](const auto& in) { return conv(in[0], in[1], in[2], conv_geometry(2, 1, 1, 1, 1)); },
          {random({rows, 4, 3, 2}, 1), random({4, 3, 3, 2}, 2), random({4}, 3)}, {.terms = 60});
    check([](const auto& in) { return conv(in[0], in[1], {}, conv_geometry(2, 2, 2, 2, 2)); },
          {random({rows, 6, 5, 4}, 1), random({6, 3, 2, 2}, 2)}, {.terms = 60});
  }
}

TEST_P(OperationTest, Conv3d) {
  for (const std::int64_t rows : {2, 1, 0}) {
    check([](const auto& in) { return conv(in[0], in[1], in[2], conv_geometry(3, 1, 1, 1, 1)); },
          {random({rows, 3, 2, 4, 2}, 1), random({2, 2, 3, 2, 2}, 2), random({2}, 3)}, {.terms = 80});
  }
}

// A bias is added to the rounded result, as where cuDNN computes the products.
TEST_P(OperationTest, ConvTranspose1d) {
  for (const std::int64_t rows : kRowCounts) {
    check([](const auto& in) { return conv_transpose(in[0], in[1], in[2], conv_geometry(1, 3, 1, 1, 1), {2}); },
          {random({rows, 4, 3}, 1), random({3, 4, 5}, 2), random({5}, 3)},
          {.terms = 30, .intermediate_of_result = 0.5});
  }
}

TEST_P(OperationTest, ConvTranspose2d) {
  for (const std::int64_t rows : kRowCounts) {
    check(
        [](const auto& in) {
          return conv_transpose(in[0], in[1], in[2], conv_geometry(2, 2, 1, 1, 1), {1, 0});
        },
        {random({rows, 3, 2, 2}, 1), random({2, 3, 3, 4}, 2), random({4}, 3)},
        {.terms = 60, .intermediate_of_result = 0.5});
    check([](const auto& in) { return conv_transpose(in[0], in[1], {}, conv_geometry(2, 1, 1, 2, 2)); },
          {random({rows, 4, 3, 6}, 1), random({6, 2, 3, 2}, 2)}, {.terms = 60});
  }
}

TEST_P(OperationTest, ConvTranspose3d) {
  for (const std::int64_t rows : {2, 1, 0}) {
    check(
        [](const auto& in) {
          return conv_transpose(in[0], in[1], in[2], conv_geometry(3, 2, 0, 1, 1), {0, 1, 0});
        },
        {random({rows, 2, 1, 2, 3}, 1), random({3, 2, 3, 2, 2}, 2), random({2}, 3)},
        {.terms = 120, .intermediate_of_result = 0.25});
  }
}

TEST_P(OperationTest, ConvTransposeOfOneInputWithItselfAddsBothGradients) {
  // The weight is the input, so the two gradients meet, rounded.
  check([](const auto& in) { return conv_transpose(in[0], in[0], {}, conv_geometry(1, 2, 1, 1, 1), {1}); },
        {random({3, 4, 3}, 1)}, {.terms = 24, .intermediate = 0.25});
}

TEST_P(OperationTest, ConvWithoutAGradientForItsInput) {
  const Tensor x = random({2, 5, 2}, 1);
  check([&x](const auto& in) { return conv(like(in[0], x), in[0], in[1], conv_geometry(1, 1, 0, 1, 1)); },
        {random({3, 2, 2}, 2), random({3}, 3)}, {.terms = 8});
}

TEST_P(OperationTest, Relu) {
  for (const std::int64_t rows : kRowCounts) check([](const auto& in) { return relu(in[0]); }, {random({rows, 9}, 1)});
}

TEST_P(OperationTest, Gelu) {
  for (const std::int64_t rows : kRowCounts) {
    check([](const auto& in) { return gelu(in[0]); }, {random({rows, 9}, 1, -4, 4)});
  }
}

TEST_P(OperationTest, GeluTanh) {
  for (const std::int64_t rows : kRowCounts) {
    check([](const auto& in) { return gelu_tanh(in[0]); }, {random({rows, 9}, 1, -4, 4)});
  }
}

// The derivative is taken from the rounded output, which PyTorch keeps too: of |dy| < 1.5 all that tanh loses near 1,
// and half of it what sigmoid does.
TEST_P(OperationTest, Tanh) {
  for (const std::int64_t rows : kRowCounts) {
    check([](const auto& in) { return tanh(in[0]); }, {random({rows, 9}, 1, -4, 4)}, {.intermediate = 1.5});
  }
}

TEST_P(OperationTest, Sigmoid) {
  for (const std::int64_t rows : kRowCounts) {
    check([](const auto& in) { return sigmoid(in[0]); }, {random({rows, 9}, 1, -8, 8)}, {.intermediate = 0.75});
  }
}

TEST_P(OperationTest, Add) {
  for (const std::int64_t rows : kRowCounts) {
    const Tensor a = random({rows, 4}, 1);
    check([](const auto& in) { return add(in[0], in[1]); }, {a, random({rows, 4}, 2)});
    check([](const auto& in) { return add(in[0], in[1]); }, {a, random({4}, 2)}, {.terms = rows});
    check([](const auto& in) { return add(in[0], in[0]); }, {a});
  }
}

TEST_P(OperationTest, Mul) {
  for (const std::int64_t rows : kRowCounts) {
    const Tensor a = random({rows, 4}, 1);
    check([](const auto& in) { return mul(in[0], in[1]); }, {a, random({rows, 4}, 2)});
    check([](const auto& in) { return mul(in[0], in[1]); }, {a, random({4}, 2)}, {.terms = rows});
    check([](const auto& in) { return mul(in[0], in[0]); }, {a});
  }
}

TEST_P(OperationTest, Scale) {
  const DeviceValue<float> host(0.75f, kCpu), there(0.75f, device());
  for (const std::int64_t rows : kRowCounts) {
    check([](const auto& in) { return scale(in[0], -2.5); }, {random({rows, 4}, 1)});
    check([&](const auto& in) { return scale_by(in[0], (in[0].device() == kCpu ? host : there).data()); },
          {random({rows, 4}, 1)});
  }
}

TEST_P(OperationTest, MaxPool) {
  for (const std::int64_t rows : kRowCounts) {
    for (int rank = 1; rank <= 3; ++rank) {
      std::vector<std::int64_t> extents{rows};
      extents.insert(extents.end(), static_cast<std::size_t>(rank), 5);
      extents.push_back(2);
      const Tensor x = random(Shape(extents), 1);
      // Windows that overlap: one element may be the maximum of 2^rank of them.
      check([rank](const auto& in) { return pool(in[0], pool_geometry(kernels::PoolKind::kMax, rank, 3, 2, 1)); }, {x},
            {.terms = 8});
    }
  }
}

TEST_P(OperationTest, AveragePool) {
  for (const std::int64_t rows : kRowCounts) {
    for (const bool count_include_pad : {true, false}) {
      const auto geometry = pool_geometry(kernels::PoolKind::kAverage, 2, 3, 2, 1, count_include_pad);
      check([geometry](const auto& in) { return pool(in[0], geometry); }, {random({rows, 5, 4, 2}, 1)}, {.terms = 9});
    }
  }
}

TEST_P(OperationTest, GlobalAveragePool) {
  for (const std::int64_t rows : kRowCounts) {
    check([](const auto& in) { return global_average_pool(in[0]); }, {random({rows, 3, 5, 4}, 1)}, {.terms = 15});
  }
}

TEST_P(OperationTest, Dropout) {
  for (const std::int64_t rows : kRowCounts) {
    check([](const auto& in) { return dropout(in[0], 0.3, {.seed = 1, .step = 2, .layer = 3}, 4); },
          {random({rows, 3, 5}, 1)});
  }
  check([](const auto& in) { return dropout(in[0], 0.0, {}, 0); }, {random({2, 3}, 1)});
}

TEST_P(OperationTest, FlattenAndReshape) {
  for (const std::int64_t rows : kRowCounts) {
    const Tensor x = random({rows, 3, 4}, 1);
    check([](const auto& in) { return flatten(in[0]); }, {x});
    check([rows](const auto& in) { return reshape(in[0], {rows, 2, 2, 3}); }, {x});
    EXPECT_EQ(flatten(x).shape(), (Shape{rows, 12}));
    EXPECT_TRUE(flatten(x).aliases(x));
  }
}

TEST_P(OperationTest, Softmax) {
  for (const std::int64_t rows : kRowCounts) {
    // The backward pass reads the rounded output, which PyTorch keeps too: y (dy - sum dy y).
    check([](const auto& in) { return softmax(in[0]); }, {random({rows, 7}, 1, -4, 4)},
          {.terms = 7, .intermediate = 0.5});
    check([](const auto& in) { return log_softmax(in[0]); }, {random({rows, 7}, 1, -4, 4)},
          {.terms = 7, .intermediate = 0.25});
  }
}

TEST_P(OperationTest, CrossEntropy) {
  for (const std::int64_t rows : kRowCounts) {
    const std::vector<std::int64_t> all{3, 0, 6, 6, 2};
    const Tensor classes = Tensor::from(std::vector(all.begin(), all.begin() + rows), {rows});
    for (const LossOptions& options : {LossOptions{}, LossOptions{.label_smoothing = 0.1}, LossOptions{.divisor = 32},
                                       LossOptions{.label_smoothing = 1, .divisor = 0.5}}) {
      check([&](const auto& in) { return cross_entropy(in[0], classes.to(in[0].device()), options); },
            {random({rows, 7}, 1, -4, 4)}, {.terms = 35});
    }
  }
}

TEST_P(OperationTest, CrossEntropyOverSequences) {
  const Tensor classes = Tensor::from<std::int64_t>({0, 1, 2, 3, 3, 2}, {2, 3});
  check([&](const auto& in) { return cross_entropy(in[0], classes.to(in[0].device())); }, {random({2, 3, 4}, 1, -4, 4)},
        {.terms = 24});
}

TEST_P(OperationTest, Mse) {
  for (const std::int64_t rows : kRowCounts) {
    const Tensor target = random({rows, 3, 2}, 2);
    for (const double divisor : {0.0, 16.0}) {
      check([&](const auto& in) { return mse(in[0], like(in[0], target), {.divisor = divisor}); },
            {random({rows, 3, 2}, 1)}, {.terms = 30});
      check([&](const auto& in) { return mse(in[0], in[1], {.divisor = divisor}); }, {random({rows, 3, 2}, 1), target},
            {.terms = 30});
    }
  }
}

TEST_P(OperationTest, SumAndMean) {
  for (const std::int64_t rows : kRowCounts) {
    const Tensor x = random({rows, 4, 2}, 1);
    check([](const auto& in) { return sum(in[0]); }, {x}, {.terms = 40});
    check([](const auto& in) { return mean(in[0]); }, {x}, {.terms = 40});
  }
  check([](const auto& in) { return sum(in[0]); }, {random({}, 1)});
}

TEST_P(OperationTest, Cast) {
  // neg() rounds nothing, and float64 needs no cast.
  check([](const auto& in) { return neg(cast(in[0], wide_of(in[0].dtype()))); }, {random({3, 2}, 1)});
  check([](const auto& in) { return neg(cast(in[0], in[0].dtype() == DType::kFloat32 ? dtype() : in[0].dtype())); },
        {random_wide({3, 2}, 1)});
}

}  // namespace
}  // namespace lockstep::ops
