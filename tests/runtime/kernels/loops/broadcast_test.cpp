// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/geometry/broadcast.h"

#include <cmath>

#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/functors/binary.h"
#include "runtime/kernels/pointwise.h"
#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

using namespace testing;

class BroadcastLoops : public KernelTest<Elementwise, Pointwise> {};
INSTANTIATE_TEST_SUITE_P(On, BroadcastLoops, kFastTypes, name_of_on);

std::vector<Binary> binary_functions() {
  std::vector<Binary> functions;
  const auto collect = [&]<class... Function>(BinaryList<Function...>) {
    (functions.push_back(Function::kBinary), ...);
  };
  collect(Binaries{});
  return functions;
}

/// Pairs that take each of the ways through the loops: whole, a row, a column, one number, runs shorter and longer than
/// a block, and several dimensions.
const std::pair<Shape, Shape> kShapes[] = {{{3, 70}, {3, 70}},
                                           {{5, 600}, {600}},
                                           {{40, 3}, {3}},
                                           {{3}, {40, 3}},
                                           {{1300}, {1}},
                                           {{}, {1300}},
                                           {{17, 70}, {17, 1}},
                                           {{600, 33}, {600, 1}},
                                           {{3, 1100}, {3, 1}},
                                           {{17, 1}, {1, 700}},
                                           {{4, 5}, {4, 1}},
                                           {{3, 20, 7}, {3, 1, 7}},
                                           {{1, 20, 1}, {3, 1, 50}},
                                           {{2, 1, 3, 1, 4, 1}, {1, 5, 1, 2, 1, 3}},
                                           {{0, 3}, {1, 3}}};

TEST_P(BroadcastLoops, EveryFunctionMatchesTheReferenceOnEveryPairOfShapes) {
  for (const Binary function : binary_functions()) {
    SCOPED_TRACE(name_of(function));
    const DType result = is_comparison(function) ? DType::kBool : dtype();
    for (const auto& [of_a, of_b] : kShapes) {
      SCOPED_TRACE(of_a.str() + " " + of_b.str());
      const Tensor a = random(of_a, 1, 0.25, 2), b = random(of_b, 2, -2, 2);
      const Shape shape = broadcast_shape("test", of_a, of_b);
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor out = on.empty(shape, result);
            on->binary(function, on(a), on(b), out);
            return std::vector{out};
          },
          bounds(1, 4));
    }
  }
}

TEST_P(BroadcastLoops, EveryFunctionOfATensorAndANumberMatchesTheReference) {
  for (const Binary function : binary_functions()) {
    SCOPED_TRACE(name_of(function));
    const DType result = is_comparison(function) ? DType::kBool : dtype();
    for (const double number : {-1.0, 0.5, 1.0, 2.0, 3.0, -1.75}) {
      const Tensor x = random({1300}, 1, 0.25, 2);
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor second = on.empty({1300}, result), first = on.empty({1300}, result);
            on->binary_with_number(function, on(x), number, false, second);
            on->binary_with_number(function, on(x), number, true, first);
            return std::vector{second, first};
          },
          bounds(1, 4));
    }
  }
}

TEST_P(BroadcastLoops, FunctionsOfThreeNumbersMatchTheReference) {
  const std::array<Shape, 3> shapes[] = {{Shape{3, 700}, Shape{3, 700}, Shape{3, 700}},
                                         {Shape{3, 1}, Shape{700}, Shape{3, 700}},
                                         {Shape{4, 1, 5}, Shape{3, 1}, Shape{}},
                                         {Shape{0, 5}, Shape{5}, Shape{1}}};
  for (const auto kind : {Ternary::kWhere, Ternary::kLerp, Ternary::kAddcmul, Ternary::kAddcdiv,
                          Ternary::kPreluBackward, Ternary::kMaximumBackward}) {
    SCOPED_TRACE(static_cast<int>(kind));
    for (const auto& [of_a, of_b, of_c] : shapes) {
      const Tensor b = random(of_b, 2, -1, 1), c = random(of_c, 3, 0.5, 2);
      const Tensor a = kind == Ternary::kWhere
                           ? tensor_of(values_of(random_tensor(of_a, DType::kUInt8, 1, 0, 2)), of_a, DType::kBool)
                           : random(of_a, 1, -1, 1);
      const Shape shape = broadcast_shape("test", broadcast_shape("test", of_a, of_b), of_c);
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor out = on.empty(shape);
            on->ternary({kind, 0.75}, on(a), on(b), on(c), out);
            return std::vector{out};
          },
          bounds(1, 4));
    }
  }
}

TEST_P(BroadcastLoops, ExpandsToAnyShape) {
  for (const auto& [from, to] : {std::pair{Shape{}, Shape{1300}}, std::pair{Shape{3, 1}, Shape{3, 700}},
                                 std::pair{Shape{5}, Shape{2, 60, 5}}, std::pair{Shape{2, 1, 5}, Shape{2, 3, 5}}}) {
    const Tensor x = random(from, 1);
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor out = on.empty(to);
          on->expand(on(x), out);
          return std::vector{out};
        },
        {});
  }
}

TEST_P(BroadcastLoops, NaNAndInfinityFollowTheReference) {
  std::vector<double> values(37, 0.5);
  for (const std::size_t at : {0u, 20u, 36u}) values[at] = kNaN;
  for (const std::size_t at : {1u, 35u}) values[at] = kInfinity;
  values[2] = -kInfinity;
  const Tensor a = tensor_of(values, {37}, dtype()), b = random({37}, 1);
  for (const Binary function : binary_functions()) {
    SCOPED_TRACE(name_of(function));
    const DType result = is_comparison(function) ? DType::kBool : dtype();
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor first = on.empty({37}, result), second = on.empty({37}, result);
          on->binary(function, on(a), on(b), first);
          on->binary(function, on(b), on(a), second);
          return std::vector{first, second};
        },
        bounds());
  }
}

TEST_P(BroadcastLoops, ThreadsChangeNothing) {
  const Tensor x = random({1500, 301}, 1, 0.5, 2), column = random({1500, 1}, 2), row = random({301}, 3);
  expect_same_bits_on_any_number_of_threads([&, on = tested()] {
    const Tensor a = on.empty({1500, 301}), b = on.empty({1500, 301}), c = on.empty({1500, 301});
    on->binary(Binary::kDiv, on(x), on(column), a);
    on->binary(Binary::kPow, on(column), on(row), b);
    on->ternary({Ternary::kLerp}, on(x), on(column), on(row), c);
    return std::vector{a, b, c};
  });
}

TEST_P(BroadcastLoops, RandomNumbersAreTheReferencesFromAnyElementOn) {
  for (const std::int64_t first : {0, 1, 2, 3, 4, 1001}) {
    for (const Distribution distribution : {Distribution::kUniform, Distribution::kNormal}) {
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor out = on.empty({1301});
            on->random(distribution, 0.25, 2, {.seed = 5, .step = 7, .stream = 3}, first, out);
            return std::vector{out};
          },
          bounds(64));
    }
  }
}

TEST(Power, FollowsTheLimitsOfC) {
  const float numbers[] = {0,  -0.0f,    1,         -1,  2,      -2,      0.5f,  -0.5f,       3,
                           -3, INFINITY, -INFINITY, NAN, 1e-40f, -1e-40f, 3e38f, 16777217.0f, 8388607.5f};
  for (const float a : numbers) {
    for (const float b : numbers) {
      const float expected = std::pow(a, b), found = power(a, b);
      EXPECT_TRUE(std::isnan(expected) ? std::isnan(found)
                                       : expected == found && std::signbit(expected) == std::signbit(found))
          << a << "^" << b << " = " << expected << ", found " << found;
    }
  }
}

TEST(Power, IsWithinAUnitOfTheLastPlace) {
  double worst = 0;
  for (double a = 1e-30; a < 1e30; a *= 1.37) {
    for (double b = -30; b < 30; b += 0.31) {
      const float base = static_cast<float>(a), exponent = static_cast<float>(b);
      const double exact = std::pow(static_cast<double>(base), static_cast<double>(exponent));
      if (exact < 1e-37 || exact > 3e38) continue;
      worst = std::max(worst, std::abs(static_cast<double>(power(base, exponent)) - exact) / exact);
    }
  }
  EXPECT_LT(worst, 0x1p-23);
}

TEST(Angle, FollowsTheLimitsOfC) {
  const float numbers[] = {0, -0.0f, 1, -1, 2, -2, INFINITY, -INFINITY, NAN, 1e-40f, -1e-40f, 3e38f, -3e38f};
  for (const float y : numbers) {
    for (const float x : numbers) {
      const float expected = std::atan2(y, x), found = angle_of(y, x);
      EXPECT_TRUE(std::isnan(expected) ? std::isnan(found)
                                       : std::abs(expected - found) <= 3e-7f * std::abs(expected) &&
                                             std::signbit(expected) == std::signbit(found))
          << "(" << x << ", " << y << "): " << expected << ", found " << found;
    }
  }
}

TEST(Angle, IsWithinThreeUnitsOfTheLastPlace) {
  double worst = 0;
  for (int i = 0; i < 100000; ++i) {
    const double turn = (i - 49999.5) * 6.2831 / 100000;
    const float y = static_cast<float>(3 * std::sin(turn)), x = static_cast<float>(3 * std::cos(turn));
    const double exact = std::atan2(static_cast<double>(y), static_cast<double>(x));
    worst = std::max(worst, std::abs((static_cast<double>(angle_of(y, x)) - exact) / exact));
  }
  EXPECT_LT(worst, 3 * 0x1p-24);
}

TEST(BroadcastShape, IsNumPys) {
  EXPECT_EQ(broadcast_shape("f", {3, 1}, {4}), (Shape{3, 4}));
  EXPECT_EQ(broadcast_shape("f", {}, {2, 3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shape("f", {1}, {0}), (Shape{0}));
  EXPECT_EQ(broadcast_shape("f", {2, 1, 4}, {3, 1}), (Shape{2, 3, 4}));
  EXPECT_THROW(broadcast_shape("f", {2, 3}, {2}), ShapeError);
  EXPECT_THROW(broadcast_shape("f", {0}, {2}), ShapeError);
}

TEST(BroadcastWalk, JoinsDimensionsThatOperandsWalkAlike) {
  const BroadcastWalk same({2, 3, 4}, {{2, 3, 4}, {2, 3, 4}});
  EXPECT_EQ(same.rank, 1);
  EXPECT_TRUE(same.is_whole(0));
  const BroadcastWalk row({2, 3, 4}, {{2, 3, 4}, {4}});
  EXPECT_EQ(row.rank, 2);
  EXPECT_FALSE(row.is_whole(1));
  EXPECT_EQ(row.offset(1, 6), 2);
  const BroadcastWalk outer({2, 3, 4}, {{2, 3, 1}, {1, 3, 4}});
  EXPECT_EQ(outer.rank, 3);
  EXPECT_EQ(outer.offset(0, 23), 5);
  EXPECT_EQ(outer.offset(1, 23), 11);
}

}  // namespace
}  // namespace lockstep::kernels
