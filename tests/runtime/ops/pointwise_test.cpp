// SPDX-License-Identifier: Apache-2.0
// Functions of one, two and three numbers: results and gradients on every device and in every dtype.
#include <functional>
#include <limits>
#include <string>

#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using ops::testing::Accuracy;
using ops::testing::kAllTypes;
using ops::testing::name_of_on;
using ops::testing::OperationTest;

using PointwiseTest = OperationTest;
INSTANTIATE_TEST_SUITE_P(On, PointwiseTest, kAllTypes, name_of_on);

/// Batches that any operation must take: several rows, one, none.
constexpr std::int64_t kRows[] = {5, 1, 0};

/// Read as it lies: as a sum behind a cast, to the bit.
TEST_P(PointwiseTest, AddsA16BitTensorToOneOfFloat32) {
  if (!is_reduced(dtype())) GTEST_SKIP() << "of one dtype";
  for (const Shape& shape : {Shape{3, 37}, Shape{}, Shape{0, 2}}) {
    const auto floats = [&](std::uint32_t seed) {
      return kernels::testing::random_tensor(shape, DType::kFloat32, seed).to(device());
    };
    const Tensor wide = leaf(floats(1)), narrow = leaf(cast(floats(2), dtype()).detach()), weights = floats(3);
    const auto all_of = [&](const Tensor& y) {
      std::vector<std::vector<double>> all{kernels::testing::values_of(y)};
      for (const bool create_graph : {true, false}) {
        const std::vector<Tensor> grads = autograd::grad(y, {wide, narrow}, weights, {.create_graph = create_graph});
        EXPECT_EQ(grads[0].dtype(), DType::kFloat32);
        EXPECT_EQ(grads[1].dtype(), dtype());
        for (const Tensor& grad : grads) all.push_back(kernels::testing::values_of(grad));
      }
      return all;
    };
    const auto expected = all_of(add(wide, cast(narrow, DType::kFloat32)));
    EXPECT_EQ(all_of(add(wide, narrow)), expected);
    EXPECT_EQ(all_of(add(narrow, wide)), expected);
  }
}

/// A function of one number, where it has a derivative.
struct Case {
  std::string name;
  std::function<Tensor(const Tensor&)> function;
  double low;
  double high;
  Accuracy accuracy = {};
};

const Case kCases[] = {
    {"neg", neg, -2, 2},
    {"abs", abs, -2, 2},
    {"sqrt", sqrt, 0.3, 4},
    // Its derivative is the cube of the rounded output, which PyTorch keeps too: three times its error.
    {"rsqrt", rsqrt, 0.3, 4, {.intermediate = 0.05}},
    {"reciprocal", reciprocal, 0.4, 4},
    {"exp", exp, -4, 2},
    {"expm1", expm1, -4, 2},
    {"log", log, 0.3, 9},
    {"log1p", log1p, -0.6, 9},
    {"log2", log2, 0.3, 9},
    {"log10", log10, 0.3, 9},
    {"sin", sin, -9, 9},
    {"cos", cos, -9, 9},
    {"tan", tan, -1.2, 1.2},
    {"sinh", sinh, -3, 3},
    {"cosh", cosh, -3, 3},
    {"asin", asin, -0.9, 0.9},
    {"acos", acos, -0.9, 0.9},
    {"atan", atan, -4, 4},
    {"erf", erf, -2, 2},
    // Its derivative is that of the rounded output y, whose error it multiplies by 2 y^2: by 2.7 at 0.9.
    {"erfinv", erfinv, -0.9, 0.9, {.terms = 4}},
    {"sign", sign, -2, 2},
    {"floor", floor, -9, 9},
    {"ceil", ceil, -9, 9},
    {"round", round, -9, 9},
    {"trunc", trunc, -9, 9},
    {"silu", silu, -8, 8},
    {"leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.2); }, -2, 2},
    {"elu", [](const Tensor& x) { return elu(x, 1.5); }, -4, 2},
    {"softplus", [](const Tensor& x) { return softplus(x); }, -8, 8},
    {"softplus with a threshold", [](const Tensor& x) { return softplus(x, 2.5, 4); }, -3, 3},
    {"clamp", [](const Tensor& x) { return clamp(x, -0.5, 0.75); }, -2, 2},
    {"clamp from below", [](const Tensor& x) { return clamp(x, 0.25); }, -2, 2},
    {"add a number", [](const Tensor& x) { return add(x, 0.75); }, -2, 2},
    {"sub a number", [](const Tensor& x) { return sub(x, 0.75); }, -2, 2},
    {"sub from a number", [](const Tensor& x) { return sub(0.75, x); }, -2, 2},
    {"mul by a number", [](const Tensor& x) { return mul(x, 0.75); }, -2, 2},
    {"div by a number", [](const Tensor& x) { return div(x, 0.75); }, -2, 2},
    {"div a number", [](const Tensor& x) { return div(0.75, x); }, 0.4, 3},
    {"square", [](const Tensor& x) { return pow(x, 2); }, -2, 2},
    {"cube", [](const Tensor& x) { return pow(x, 3); }, -2, 2},
    {"pow of a number", [](const Tensor& x) { return pow(x, -1.7); }, 0.5, 3},
    {"pow 0", [](const Tensor& x) { return pow(x, 0); }, -2, 2},
    {"a number to the power", [](const Tensor& x) { return pow(2.5, x); }, -2, 2},
};

TEST_P(PointwiseTest, FunctionsOfOneNumber) {
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.name);
    for (const std::int64_t rows : kRows) {
      check([&](const auto& in) { return one.function(in[0]); }, {random({rows, 3, 3}, 1, one.low, one.high)},
            one.accuracy);
    }
  }
}

TEST_P(PointwiseTest, FunctionsOfAScalar) {
  check([](const auto& in) { return exp(in[0]); }, {random({}, 1)});
}

/// Pairs of shapes and what they broadcast to.
struct Shapes {
  Shape a;
  Shape b;
  Shape out;
};
const Shapes kShapes[] = {{{5, 4}, {5, 4}, {5, 4}},
                          {{5, 4}, {4}, {5, 4}},
                          {{4}, {5, 4}, {5, 4}},
                          {{5, 4}, {5, 1}, {5, 4}},
                          {{5, 1}, {4}, {5, 4}},
                          {{2, 3, 4}, {}, {2, 3, 4}},
                          {{}, {3, 1}, {3, 1}},
                          {{2, 3, 4}, {3, 1}, {2, 3, 4}},
                          {{2, 3, 4}, {2, 1, 4}, {2, 3, 4}},
                          {{2, 1, 4}, {1, 3, 1}, {2, 3, 4}},
                          {{2, 1, 2, 1, 2, 1}, {1, 3, 1, 2, 1, 2}, {2, 3, 2, 2, 2, 2}},
                          {{0, 4}, {4}, {0, 4}},
                          {{0, 4}, {1, 1}, {0, 4}},
                          {{1}, {0}, {0}}};

struct PairCase {
  std::string name;
  Tensor (*function)(const Tensor&, const Tensor&);
  double low;  ///< of the second operand
  double high;
};
const PairCase kPairs[] = {{"add", add, -1, 1},    {"sub", sub, -1, 1},          {"mul", mul, -1, 1},
                           {"div", div, 0.5, 2},   {"maximum", maximum, 0.2, 3}, {"minimum", minimum, 0.2, 3},
                           {"atan2", atan2, -2, 2}};

TEST_P(PointwiseTest, FunctionsOfTwoBroadcastOperands) {
  for (const PairCase& pair : kPairs) {
    SCOPED_TRACE(pair.name);
    for (const Shapes& shapes : kShapes) {
      SCOPED_TRACE(shapes.a.str() + " and " + shapes.b.str());
      const Tensor a = random(shapes.a, 1, 0.3, 2.5), b = random(shapes.b, 2, pair.low, pair.high);
      EXPECT_EQ(pair.function(a, b).shape(), shapes.out);
      check([&](const auto& in) { return pair.function(in[0], in[1]); }, {a, b}, {.terms = shapes.out.numel()});
    }
  }
}

TEST_P(PointwiseTest, PowersOfTensors) {
  for (const Shapes& shapes : kShapes) {
    SCOPED_TRACE(shapes.a.str() + " and " + shapes.b.str());
    check([](const auto& in) { return pow(in[0], in[1]); }, {random(shapes.a, 1, 0.5, 2), random(shapes.b, 2, -2, 2)},
          {.terms = shapes.out.numel()});
  }
}

TEST_P(PointwiseTest, TheAngleOfTheOriginHasAGradientOf0) {
  const Tensor y = random({3}, 1, 0, 0), x = random({3}, 2, 0, 0);
  for (const Tensor& leaf : {y, x}) leaf.set_requires_grad(true);
  sum(atan2(y, x)).backward();
  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(y.grad().item(i), 0);
    EXPECT_EQ(x.grad().item(i), 0);
  }
}

TEST_P(PointwiseTest, PreluWithAWeightAChannelAndWithOne) {
  for (const std::int64_t rows : kRows) {
    const Tensor x = random({rows, 3, 4}, 1);
    for (const Shape& weight : {Shape{4}, Shape{1}, Shape{}}) {
      check([](const auto& in) { return prelu(in[0], in[1]); }, {x, random(weight, 2, 0.1, 0.5)}, {.terms = 12 * rows});
    }
  }
}

TEST_P(PointwiseTest, WhereChoosesFromBroadcastOperands) {
  for (const std::int64_t rows : kRows) {
    const Tensor condition = gt(random({rows, 1, 4}, 3), 0);
    const auto holds = [&](const Tensor& like) { return condition.to(like.device()); };
    const Tensor a = random({rows, 3, 4}, 1), b = random({rows, 3, 4}, 2), row = random({4}, 4);
    check([&](const auto& in) { return where(holds(in[0]), in[0], in[1]); }, {a, b});
    check([&](const auto& in) { return where(holds(in[0]), in[0], in[1]); }, {a, row}, {.terms = 3 * rows});
    check([&](const auto& in) { return where(holds(in[0]), in[0], -0.5); }, {a});
    check([&](const auto& in) { return where(holds(in[0]), -0.5, in[0]); }, {a});
  }
}

TEST_P(PointwiseTest, ClampsBetweenTensors) {
  const Tensor x = random({5, 4}, 1, -2, 2), low = random({4}, 2, -1, -0.1), high = random({4}, 3, 0.1, 1);
  check([](const auto& in) { return clamp(in[0], in[1], in[2]); }, {x, low, high}, {.terms = 5});
  check([](const auto& in) { return clamp(in[0], in[1], Tensor()); }, {x, low}, {.terms = 5});
}

TEST_P(PointwiseTest, FunctionsOfThreeNumbers) {
  for (const std::int64_t rows : kRows) {
    const Tensor a = random({rows, 4}, 1), b = random({rows, 4}, 2), c = random({4}, 3, 0.5, 2);
    const Accuracy accuracy{.terms = rows};
    check([](const auto& in) { return lerp(in[0], in[1], in[2]); }, {a, b, c}, accuracy);
    check([](const auto& in) { return lerp(in[0], in[1], 0.25); }, {a, b});
    check([](const auto& in) { return addcmul(in[0], in[1], in[2], 0.75); }, {a, b, c}, accuracy);
    check([](const auto& in) { return addcdiv(in[0], in[1], in[2], 0.75); }, {a, b, c}, accuracy);
  }
}

TEST_P(PointwiseTest, ExpandAndSumTo) {
  for (const Shapes& shapes : kShapes) {
    SCOPED_TRACE(shapes.a.str() + " to " + shapes.out.str());
    check([&](const auto& in) { return expand(in[0], shapes.out); }, {random(shapes.a, 1)},
          {.terms = shapes.out.numel()});
    check([&](const auto& in) { return sum_to(in[0], shapes.b); }, {random(shapes.out, 1)},
          {.terms = shapes.out.numel()});
  }
}

TEST_P(PointwiseTest, OperatorsOnTensorsAndNumbers) {
  // A chain of operations.
  check([](const auto& in) { return 2 - (in[0] * in[1] + 1.5) / (-in[1] + 4) * 0.5 + in[0] - 1; },
        {random({5, 4}, 1), random({4}, 2)}, {.terms = 5, .intermediate = 0.25, .intermediate_of_result = 1.5});
}

TEST_P(PointwiseTest, ComparisonsAreBoolOnEveryDevice) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const auto there = [&](const std::vector<double>& values, const Shape& shape) {
    return kernels::testing::tensor_of(values, shape, dtype()).to(device());
  };
  const Tensor a = there({1, 2, 3, kNaN}, {4}), b = there({2, 2, 2, 2}, {4}), column = there({1, 2}, {2, 1});
  using Truth = std::vector<double>;
  const auto expect = [&](const Tensor& found, const Truth& truth) {
    EXPECT_EQ(found.dtype(), DType::kBool);
    EXPECT_FALSE(found.requires_grad());
    EXPECT_EQ(kernels::testing::values_of(found), truth);
  };
  expect(eq(a, b), {0, 1, 0, 0});
  expect(ne(a, b), {1, 0, 1, 1});
  expect(lt(a, b), {1, 0, 0, 0});
  expect(le(a, b), {1, 1, 0, 0});
  expect(gt(a, b), {0, 0, 1, 0});
  expect(ge(a, b), {0, 1, 1, 0});
  expect(eq(a, 2), {0, 1, 0, 0});
  expect(ne(a, 2), {1, 0, 1, 1});
  expect(lt(a, 2), {1, 0, 0, 0});
  expect(le(a, 2), {1, 1, 0, 0});
  expect(gt(a, 2), {0, 0, 1, 0});
  expect(ge(a, 2), {0, 1, 1, 0});
  expect(lt(column, a), {0, 1, 1, 0, 0, 0, 1, 0});
}

}  // namespace
}  // namespace lockstep::ops
