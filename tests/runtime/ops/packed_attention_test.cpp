// SPDX-License-Identifier: Apache-2.0
#include "amp/autocast/autocast.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using kernels::testing::bytes_of;
using kernels::testing::random_tensor;
using kernels::testing::values_of;
using lockstep::testing::expect_second_gradients;
using ops::testing::kAllTypes;
using ops::testing::name_of_on;

/// The same by operations that move heads.
Tensor moved(const Tensor& x, std::int64_t heads, std::int64_t kv_heads, const AttentionOptions& options) {
  const std::vector<Tensor> parts = split_heads(x, {heads, kv_heads, kv_heads}, x.size(2) / (heads + 2 * kv_heads));
  return join_heads({scaled_dot_product_attention(parts[0], parts[1], parts[2], options)});
}

class PackedAttentionTest : public ops::testing::OperationTest {};
INSTANTIATE_TEST_SUITE_P(On, PackedAttentionTest, kAllTypes, name_of_on);

TEST_P(PackedAttentionTest, IsAttentionOfItsHeads) {
  for (const std::int64_t kv_heads : {1, 2, 4}) {
    check([=](const auto& in) { return packed_attention(in[0], 4, kv_heads, {.causal = true, .scale = 0.4}); },
          {random({2, 5, (4 + 2 * kv_heads) * 3}, 1)}, {.terms = 16, .intermediate = 0.5});
  }
}

TEST_P(PackedAttentionTest, GivesTheBitsOfHeadsThatWereMoved) {
  struct Case {
    std::int64_t length, channels;
    bool masked;
    double dropout;
  };
  for (const Case& c : {Case{7, 4, false, 0}, {66, 32, false, 0}, {66, 32, true, 0.4}, {130, 40, true, 0}}) {
    SCOPED_TRACE(c.length);
    const Tensor x = cast(random({2, c.length, 8 * c.channels}, 1), dtype()).to(device());
    const Tensor dy = cast(random({2, c.length, 4 * c.channels}, 2), dtype()).to(device());
    x.set_requires_grad(true);
    AttentionOptions options{.causal = true, .dropout = c.dropout, .dropout_key = {.seed = 3}, .first_sample = 4};
    if (c.masked) options.mask = gt(random({2, 1, 1, c.length}, 3).to(device()), -0.4);
    const Tensor y = packed_attention(x, 4, 2, options), wanted = moved(x, 4, 2, options);
    EXPECT_EQ(bytes_of(y.to(kCpu)), bytes_of(wanted.to(kCpu)));
    EXPECT_EQ(bytes_of(autograd::grad(y, {x}, dy)[0].to(kCpu)), bytes_of(autograd::grad(wanted, {x}, dy)[0].to(kCpu)));
  }
}

TEST_P(PackedAttentionTest, AMaskThatRequiresAGradientGetsIt) {
  check([](const auto& in) { return packed_attention(in[0], 2, 1, {.mask = in[1]}); },
        {random({2, 3, 8}, 1), random({2, 2, 3, 3}, 2)}, {.terms = 16, .intermediate = 0.5});
}

TEST(PackedAttention, SecondGradients) {
  const std::vector<Tensor> inputs{random_tensor({1, 3, 8}, DType::kFloat64, 1)};
  const Tensor bias = random_tensor({3, 3}, DType::kFloat64, 2);
  expect_second_gradients([](const auto& in) { return packed_attention(in[0], 2, 1, {.causal = true}); }, inputs);
  expect_second_gradients(
      [&](const auto& in) {
        return packed_attention(in[0], 2, 1, {.mask = bias, .dropout = 0.3, .dropout_key = {.seed = 5}});
      },
      inputs);
}

TEST(PackedAttention, RunsInAutocastsDtype) {
  const Tensor x = random_tensor({2, 3, 12}, DType::kFloat32, 1), mask = random_tensor({3, 3}, DType::kFloat32, 2);
  x.set_requires_grad(true);
  const amp::Autocast autocast(DType::kBFloat16);
  const Tensor y = packed_attention(x, 2, 2, {.mask = mask});
  EXPECT_EQ(y.dtype(), DType::kBFloat16);
  EXPECT_EQ(autograd::grad(sum(y), {x})[0].dtype(), DType::kFloat32);
}

TEST(PackedAttention, OfNothingIsEmpty) {
  for (const Shape& shape : {Shape{0, 3, 8}, Shape{2, 0, 8}}) {
    const Tensor x = Tensor::zeros(shape, DType::kFloat32);
    x.set_requires_grad(true);
    for (const bool create_graph : {false, true}) {
      const Tensor y = packed_attention(x, 2, 1);
      EXPECT_EQ(y.shape(), shape.with(2, shape[2] / 2));
      EXPECT_EQ(autograd::grad(sum(y), {x}, {}, {.create_graph = create_graph})[0].shape(), shape);
    }
  }
}

TEST(PackedAttention, RefusesWhatDoesNotFit) {
  const auto tensor = [](const Shape& shape) { return Tensor::zeros(shape, DType::kFloat32); };
  EXPECT_THROW(packed_attention(tensor({2, 3, 11}), 2, 1), ShapeError);
  EXPECT_THROW(packed_attention(tensor({2, 3, 0}), 2, 1), ShapeError);
  EXPECT_THROW(packed_attention(tensor({2, 3, 35}), 3, 2), ShapeError);
  EXPECT_THROW(packed_attention(tensor({2, 3, 12}), 0, 1), ShapeError);
  EXPECT_THROW(packed_attention(tensor({2, 3, 12}), 4, 0), ShapeError);
  EXPECT_THROW(packed_attention(tensor({2, 3, 4, 12}), 2, 1), ShapeError);
  EXPECT_THROW(packed_attention(tensor({2, 3, 12}), 2, 2, {.mask = tensor({3, 4})}), ShapeError);
  EXPECT_THROW(packed_attention(tensor({2, 3, 12}), 2, 2, {.dropout = -1}), UsageError);
}

}  // namespace
}  // namespace lockstep::ops
