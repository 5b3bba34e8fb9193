// SPDX-License-Identifier: Apache-2.0
#include "amp/autocast/autocast.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using kernels::testing::random_tensor;
using kernels::testing::values_of;
using lockstep::testing::expect_second_gradients;
using ops::testing::kAllTypes;
using ops::testing::name_of_on;

class AttentionTest : public ops::testing::OperationTest {};
INSTANTIATE_TEST_SUITE_P(On, AttentionTest, kAllTypes, name_of_on);

Tensor attention(const std::vector<Tensor>& in, const AttentionOptions& options = {}) {
  return scaled_dot_product_attention(in[0], in[1], in[2], options);
}

// The backward pass reads the rounded result, which PyTorch keeps too.
constexpr testing::Accuracy accuracy(std::int64_t terms) { return {.terms = terms, .intermediate = 0.5}; }

TEST_P(AttentionTest, OfEveryLength) {
  for (const auto& [queries, keys] : {std::pair{1, 1}, {2, 7}, {65, 3}, {3, 65}, {5, 0}, {0, 5}}) {
    for (const bool causal : {false, true}) {
      check([causal](const auto& in) { return attention(in, {.causal = causal}); },
            {random({2, queries, 3}, 1), random({2, keys, 3}, 2), random({2, keys, 2}, 3)}, accuracy(queries + keys));
    }
  }
}

TEST_P(AttentionTest, OfAnyLeadingDimensions) {
  for (const Shape& shape : {Shape{4, 3}, Shape{2, 4, 3}, Shape{2, 1, 4, 3}, Shape{2, 1, 3, 4, 3}, Shape{0, 2, 4, 3}}) {
    check([](const auto& in) { return attention(in, {.scale = 0.3}); },
          {random(shape, 1), random(shape, 2), random(shape, 3)}, accuracy(8));
  }
}

TEST_P(AttentionTest, HeadsOfQueriesShareHeadsOfKeys) {
  check([](const auto& in) { return attention(in, {.causal = true}); },
        {random({2, 4, 3, 3}, 1), random({2, 2, 5, 3}, 2), random({2, 2, 5, 2}, 3)}, accuracy(16));
}

/// What a GPU leaves to cuDNN in 16 bits, which rounds the probabilities and the slopes of scores before it multiplies
/// them, and what each head gives to a key before it adds these up.
TEST_P(AttentionTest, OfHeadsThatALibraryComputes) {
  if (dtype() == DType::kFloat64) GTEST_SKIP() << "differences of so many numbers would take minutes";
  struct Case {
    std::int64_t batch, heads, kv_heads, queries, keys, channels;
    bool causal;
  };
  for (const Case& c :
       {Case{2, 2, 2, 77, 77, 64, true}, Case{1, 4, 2, 130, 130, 64, true}, Case{1, 2, 2, 65, 100, 128, false},
        Case{1, 3, 1, 128, 128, 128, true}, Case{1, 1, 1, 64, 64, 8, false}, Case{1, 1, 1, 197, 197, 80, false}}) {
    SCOPED_TRACE(c.queries);
    check([&](const auto& in) { return attention(in, {.causal = c.causal}); },
          {random({c.batch, c.heads, c.queries, c.channels}, 1), random({c.batch, c.kv_heads, c.keys, c.channels}, 2),
           random({c.batch, c.kv_heads, c.keys, c.channels}, 3)},
          {.terms = c.queries + c.keys, .intermediate = 16, .intermediate_of_result = 1});
  }
}

/// What a GPU leaves to its own kernels on tensor cores in 16 bits: lengths from 32 on, with masks and dropout, and
/// heads that cuDNN does not take. They round what it rounds, and so does a CPU that multiplies bfloat16, from 64
/// queries and keys and 32 channels on.
TEST_P(AttentionTest, OfLengthsThatHardwareMultiplies) {
  if (dtype() == DType::kFloat64) GTEST_SKIP() << "differences of so many numbers would take minutes";
  enum class Mask { kNone, kRising, kPadding, kBlindRows };
  struct Case {
    std::int64_t batch, heads, kv_heads, queries, keys, channels, value_channels;
    bool causal;
    Mask mask;
    double dropout;
  };
  for (const Case& c : {Case{1, 2, 2, 32, 32, 64, 64, true, Mask::kBlindRows, 0},
                        {2, 2, 1, 77, 70, 40, 36, false, Mask::kRising, 0.3},
                        {1, 1, 1, 97, 133, 128, 128, false, Mask::kPadding, 0.1},
                        {1, 4, 2, 40, 100, 20, 33, true, Mask::kNone, 0.5},
                        {1, 4, 2, 150, 140, 32, 33, true, Mask::kBlindRows, 0.5},
                        {1, 2, 2, 130, 40, 8, 8, true, Mask::kNone, 0},
                        {1, 1, 1, 33, 35, 128, 1, false, Mask::kRising, 0},
                        {1, 1, 1, 32, 64, 64, 64, false, Mask::kNone, 1.0}}) {
    SCOPED_TRACE(c.keys);
    std::vector<float> mask;
    for (std::int64_t query = 0; query < c.queries; ++query) {
      for (std::int64_t key = 0; key < c.keys; ++key) {
        // Rising scores: the largest so far is exceeded again and again. Padding: keys that no query sees.
        mask.push_back(c.mask == Mask::kRising    ? 0.5f * static_cast<float>(key)
                       : c.mask == Mask::kPadding ? (key < c.keys - 37 ? 1.0f : -1.0f)
                                                  : (query % 5 != 3 ? 1.0f : -1.0f));
      }
    }
    const Tensor values = Tensor::from(mask, {c.queries, c.keys});
    AttentionOptions options{.causal = c.causal, .dropout = c.dropout, .dropout_key = {.seed = 7, .layer = 2}};
    check(
        [&](const auto& in) {
          if (c.mask != Mask::kNone) options.mask = like(in[0], values);
          if (c.mask == Mask::kPadding || c.mask == Mask::kBlindRows) options.mask = gt(options.mask, 0);
          return attention(in, options);
        },
        {random({c.batch, c.heads, c.queries, c.channels}, 1), random({c.batch, c.kv_heads, c.keys, c.channels}, 2),
         random({c.batch, c.kv_heads, c.keys, c.value_channels}, 3)},
        {.terms = c.queries + c.keys, .intermediate = 16, .intermediate_of_result = 1});
  }
}

TEST_P(AttentionTest, WithMasks) {
  const Tensor q = random({2, 2, 3, 4}, 1), k = random({2, 2, 5, 4}, 2), v = random({2, 2, 5, 4}, 3);
  for (const Shape& shape : {Shape{2, 2, 3, 5}, Shape{3, 5}, Shape{2, 1, 1, 5}, Shape{5}}) {
    SCOPED_TRACE(shape.str());
    const Tensor bias = random(shape, 4);
    check([&](const auto& in) { return attention(in, {.mask = like(in[0], bias)}); }, {q, k, v}, accuracy(8));
    check([&](const auto& in) { return attention(in, {.mask = gt(like(in[0], bias), 0), .causal = true}); }, {q, k, v},
          accuracy(8));
  }
}

TEST_P(AttentionTest, AMaskThatRequiresAGradientGetsIt) {
  check([](const auto& in) { return attention(in, {.mask = in[3]}); },
        {random({2, 2, 3, 4}, 1), random({2, 2, 5, 4}, 2), random({2, 2, 5, 4}, 3), random({2, 1, 3, 5}, 4)},
        accuracy(16));
}

TEST_P(AttentionTest, WithDropout) {
  for (const auto& [queries, keys] : {std::pair{1, 1}, {3, 7}, {70, 5}, {5, 101}}) {
    for (const bool causal : {false, true}) {
      const AttentionOptions options{
          .causal = causal, .dropout = 0.3, .dropout_key = {.seed = 7, .step = 3, .layer = 2}, .first_sample = 5};
      check([&](const auto& in) { return attention(in, options); },
            {random({2, queries, 3}, 1), random({2, keys, 3}, 2), random({2, keys, 2}, 3)}, accuracy(queries + keys));
    }
  }
}

// What is made of operations with ops::dropout, whose mask is the same.
TEST_P(AttentionTest, DropoutsMaskIsThatOfTheOperation) {
  const Tensor q = random({2, 2, 3, 4}, 1), k = random({2, 2, 5, 4}, 2), v = random({2, 2, 5, 4}, 3);
  const kernels::DropoutKey key{.seed = 11, .step = 4, .layer = 1, .call = 2};
  for (const double p : {0.5, 1.0}) {
    const auto composed = [&](const Tensor& a, const Tensor& b, const Tensor& c) {
      const auto wide = [](const Tensor& x) { return x.reshaped({4, x.size(2), 4}); };
      const Tensor products = scale(matmul(wide(a), false, wide(b), true), 0.5);
      const Tensor dropped = dropout(softmax(products).reshaped({2, 30}), p, key, 9);
      return matmul(dropped.reshaped({4, 3, 5}), wide(c)).reshaped({2, 2, 3, 4});
    };
    const Tensor there = scaled_dot_product_attention(q.to(device()), k.to(device()), v.to(device()),
                                                      {.dropout = p, .dropout_key = key, .first_sample = 9});
    const auto exact = [](const Tensor& x) {
      return kernels::testing::tensor_of(values_of(x), x.shape(), DType::kFloat64);
    };
    testing::expect_accurate(there, composed(exact(q), exact(k), exact(v)), dtype(), {.terms = 32});
  }
}

// A rank that has the second half of a batch drops what one rank would drop there.
TEST(Attention, DropoutDependsOnThePlaceInTheGlobalBatch) {
  const Tensor x = random_tensor({4, 2, 5, 3}, DType::kFloat32, 1);
  const kernels::DropoutKey key{.seed = 3};
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    const Tensor own = x.rows(begin, end);
    return values_of(
        scaled_dot_product_attention(own, own, own, {.dropout = 0.4, .dropout_key = key, .first_sample = begin}));
  };
  std::vector<double> halves = part(0, 1);
  for (const double value : part(1, 4)) halves.push_back(value);
  EXPECT_EQ(halves, part(0, 4));
}

TEST(Attention, SecondGradients) {
  const auto tensor = [](const Shape& shape, std::uint32_t seed) {
    return random_tensor(shape, DType::kFloat64, seed);
  };
  const std::vector<Tensor> inputs{tensor({1, 2, 3, 2}, 1), tensor({1, 1, 4, 2}, 2), tensor({1, 1, 4, 3}, 3)};
  const Tensor bias = tensor({3, 4}, 4);
  expect_second_gradients([](const auto& in) { return attention(in); }, inputs);
  expect_second_gradients([](const auto& in) { return attention(in, {.causal = true, .scale = 0.7}); }, inputs);
  expect_second_gradients([&](const auto& in) { return attention(in, {.mask = bias}); }, inputs);
  expect_second_gradients(
      [&](const auto& in) { return attention(in, {.mask = bias, .dropout = 0.3, .dropout_key = {.seed = 5}}); },
      inputs);
  expect_second_gradients([&](const auto& in) { return attention(in, {.mask = gt(bias, -0.2)}); }, inputs);
}

TEST(Attention, TheRecordedBackwardGivesTheFusedOnesGradients) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    std::vector<Tensor> inputs;
    for (const std::uint32_t seed : {1u, 2u, 3u}) inputs.push_back(random_tensor({2, 7, 4}, dtype, seed));
    for (const Tensor& input : inputs) input.set_requires_grad(true);
    const Tensor dy = random_tensor({2, 7, 4}, dtype, 4);
    const std::vector<Tensor> fused = autograd::grad(attention(inputs, {.causal = true}), inputs, dy);
    const std::vector<Tensor> recorded =
        autograd::grad(attention(inputs, {.causal = true}), inputs, dy, {.create_graph = true});
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(recorded[i].dtype(), dtype);
      testing::expect_accurate(recorded[i], fused[i], dtype, accuracy(8));
    }
  }
}

TEST(Attention, RunsInAutocastsDtype) {
  const Tensor q = random_tensor({3, 4}, DType::kFloat32, 1), mask = random_tensor({3, 3}, DType::kFloat32, 2);
  q.set_requires_grad(true);
  const amp::Autocast autocast(DType::kBFloat16);
  const Tensor y = scaled_dot_product_attention(q, q, q, {.mask = mask});
  EXPECT_EQ(y.dtype(), DType::kBFloat16);
  EXPECT_EQ(autograd::grad(sum(y), {q})[0].dtype(), DType::kFloat32);
}

TEST(Attention, AQueryThatSeesNoKeyGivesNothingAndTakesNoGradient) {
  const Tensor q = random_tensor({2, 3}, DType::kFloat32, 1), k = random_tensor({2, 3}, DType::kFloat32, 2);
  for (const Tensor& input : {q, k}) input.set_requires_grad(true);
  const Tensor mask = lt(Tensor::from<float>({0, 0, 1, 0}, {2, 2}), -1);
  for (const bool create_graph : {false, true}) {
    const Tensor y = scaled_dot_product_attention(q, k, k, {.mask = mask});
    EXPECT_EQ(values_of(y), std::vector<double>(6, 0.0));
    for (const Tensor& gradient : autograd::grad(sum(y), {q, k}, {}, {.create_graph = create_graph})) {
      EXPECT_EQ(values_of(gradient), std::vector<double>(6, 0.0));
    }
  }
}

/// A mask of large finite numbers, as models have it in place of -inf: where it covers a whole row, every key counts
/// alike.
TEST_P(AttentionTest, ARowThatAFiniteMaskCoversIsTheMeanOfItsValues) {
  const Tensor mask = ops::full({2, 4}, dtype() == DType::kFloat16 ? -6e4 : -1e9, {dtype(), device()});
  std::vector<Tensor> inputs{random({2, 3}, 1), random({4, 3}, 2), random({4, 3}, 3)};
  for (Tensor& input : inputs) {
    input = cast(input, dtype()).to(device());
    if (&input != &inputs[2]) input = scale(input, 0x1p-10).detach();
    input.set_requires_grad(true);
  }
  const Tensor dy = ops::ones({2, 3}, {dtype(), device()});
  for (const bool create_graph : {false, true}) {
    const Tensor y = attention(inputs, {.mask = mask});
    const Tensor of_values = autograd::grad(y, {inputs[2]}, dy, {.create_graph = create_graph})[0];
    for (const double value : values_of(of_values)) EXPECT_NEAR(value, 0.5, 2e-3);
    const std::vector<double> means = values_of(mean(inputs[2], {0})), found = values_of(y);
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], means[i % 3], 1e-2);
  }
}

TEST(Attention, OfNoHeadsIsEmpty) {
  for (const Tensor& x :
       {random_tensor({2, 0, 3, 4}, DType::kFloat32, 1), random_tensor({2, 0, 64, 32}, DType::kBFloat16, 1)}) {
    x.set_requires_grad(true);
    for (const bool create_graph : {false, true}) {
      const Tensor y = scaled_dot_product_attention(x, x, x);
      EXPECT_EQ(y.shape(), x.shape());
      EXPECT_EQ(autograd::grad(sum(y), {x}, {}, {.create_graph = create_graph})[0].shape(), x.shape());
    }
  }
}

TEST(Attention, RefusesWhatDoesNotFit) {
  const auto tensor = [](const Shape& shape, DType dtype = DType::kFloat32) { return Tensor::zeros(shape, dtype); };
  const Tensor q = tensor({2, 2, 3, 4});
  EXPECT_THROW(scaled_dot_product_attention(q, tensor({2, 3, 4}), q), ShapeError);
  EXPECT_THROW(scaled_dot_product_attention(q, tensor({1, 2, 3, 4}), tensor({1, 2, 3, 4})), ShapeError);
  EXPECT_THROW(scaled_dot_product_attention(q, tensor({2, 2, 3, 5}), q), ShapeError);
  EXPECT_THROW(scaled_dot_product_attention(q, q, tensor({2, 2, 5, 4})), ShapeError);
  // As many elements as fit, in another order.
  EXPECT_THROW(scaled_dot_product_attention(q, tensor({2, 1, 6, 4}), tensor({2, 2, 3, 4})), ShapeError);
  EXPECT_THROW(scaled_dot_product_attention(q, q, tensor({2, 2, 3, 4}, DType::kFloat16)), ShapeError);
  EXPECT_THROW(scaled_dot_product_attention(q, q, q, {.mask = tensor({3, 4})}), ShapeError);
  EXPECT_THROW(scaled_dot_product_attention(q, q, q, {.mask = tensor({3, 3}, DType::kInt64)}), ShapeError);
  EXPECT_THROW(scaled_dot_product_attention(q, q, q, {.mask = tensor({2, 2, 2, 3, 3})}), ShapeError);
  EXPECT_THROW(scaled_dot_product_attention(q, q, q, {.dropout = 1.5}), UsageError);
  EXPECT_THROW(scaled_dot_product_attention(tensor({4}), tensor({4}), tensor({4})), ShapeError);
}

}  // namespace
}  // namespace lockstep::ops
