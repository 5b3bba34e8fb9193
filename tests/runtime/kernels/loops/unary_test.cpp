// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/functors/unary.h"

#include <cmath>

#include "runtime/kernels/pointwise.h"
#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

using namespace testing;

class UnaryLoops : public KernelTest<Pointwise> {};
INSTANTIATE_TEST_SUITE_P(On, UnaryLoops, kFastTypes, name_of_on);

/// Every function of the list.
std::vector<UnaryFunction> unary_functions() {
  std::vector<UnaryFunction> functions;
  const auto collect = [&]<class... Function>(UnaryList<Function...>) { (functions.push_back(Function::kUnary), ...); };
  collect(Unaries{});
  for (UnaryFunction& function : functions) {
    if (function.kind == Unary::kLeakyRelu) function.first = 0.2;
    if (function.kind == Unary::kElu) function.first = 1.5;
    if (function.kind == Unary::kSoftplus) function = {Unary::kSoftplus, 2, 3};
    if (function.kind == Unary::kClamp) function = {Unary::kClamp, -0.5, 0.25};
  }
  return functions;
}

TEST_P(UnaryLoops, EveryFunctionMatchesTheReference) {
  for (const UnaryFunction& function : unary_functions()) {
    SCOPED_TRACE(static_cast<int>(function.kind));
    for (const std::int64_t n : kLengths) {
      const Tensor x = random({n}, 1, -4, 4), at = random({n}, 2, 0.25, 2), dy = random({n}, 3);
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor y = on.empty({n}), dx = on.empty({n}), in_place = on.copy(at);
            on->unary(function, on(x), y);
            on->unary_backward(function, on(at), on(dy), dx);
            on->unary(function, in_place, in_place);
            return std::vector{y, dx, in_place};
          },
          bounds(8, 4));
    }
  }
}

TEST_P(UnaryLoops, NumbersAtTheEndsOfTheTypeAndNaN) {
  std::vector<double> values{0, -0.0, 1, -1, 1e-7, -1e-7, 6e-5, 15, -15, 100, -100, 60000, kInfinity, -kInfinity, kNaN};
  values.resize(37, 0.5);
  const Tensor x = tensor_of(values, {37}, dtype());
  for (const UnaryFunction& function : unary_functions()) {
    SCOPED_TRACE(static_cast<int>(function.kind));
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor y = on.empty({37});
          on->unary(function, on(x), y);
          return std::vector{y};
        },
        bounds(8));
  }
}

TEST_P(UnaryLoops, AnglesOfAnySize) {
  std::vector<double> values;
  for (int exponent = 0; exponent < 38; ++exponent) values.push_back(std::pow(10, exponent) * 1.2345678);
  const auto n = static_cast<std::int64_t>(values.size());
  const Tensor x = tensor_of(values, {n}, dtype()), dy = random({n}, 1);
  for (const Unary function : {Unary::kSin, Unary::kCos, Unary::kTan}) {
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor y = on.empty({n}), dx = on.empty({n});
          on->unary(function, on(x), y);
          on->unary_backward(function, on(x), on(dy), dx);
          return std::vector{y, dx};
        },
        bounds(4));
  }
}

/// The distance of a float to the exact value, in units of the last place of that.
double ulps(float found, double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::abs(static_cast<double>(found) - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

struct Range {
  double low;
  double high;
};

/// The largest distance over numbers of every size between the ends, of which the upper is positive.
template <class Function>
double worst_ulps(const Function& function, Range range) {
  double worst = 0;
  const auto look = [&](double at) {
    if (!(at >= range.low && at <= range.high)) return;
    const float x = static_cast<float>(at);
    const double exact = function.exact(static_cast<double>(x));
    if (std::isnan(exact)) {
      EXPECT_TRUE(std::isnan(function.value(x))) << x;
    } else if (std::isinf(static_cast<float>(exact))) {
      EXPECT_EQ(function.value(x), static_cast<float>(exact)) << x;
    } else {
      worst = std::max(worst, ulps(function.value(x), exact));
    }
  };
  for (int i = 0; i <= 60000; ++i) {
    look(range.low + (range.high - range.low) * i / 60000);
    const double size = std::exp2(-140 + 268.0 * i / 60000);
    look(size);
    look(-size);
  }
  return worst;
}

TEST(UnaryFunctors, AreWithinFourUnitsOfTheLastPlace) {
  const auto expect = [](const char* name, const auto& function, Range range, double bound = 4) {
    EXPECT_LE(worst_ulps(function, range), bound) << name;
  };
  expect("sqrt", Sqrt(), {0, 1e38}, 1);
  expect("rsqrt", Rsqrt(), {1e-38, 1e38}, 2);
  expect("reciprocal", Reciprocal(), {-1e38, 1e38}, 1);
  expect("exp", Exp(), {-110, 95}, 2);
  expect("expm1", Expm1(), {-110, 95}, 2);
  expect("log", Log(), {0, 3e38}, 2);
  expect("log1p", Log1p(), {-1, 3e38}, 2);
  expect("log2", Log2(), {0, 3e38}, 2);
  expect("log10", Log10(), {0, 3e38}, 3);
  expect("sin", Sin(), {-0x1p29, 0x1p29}, 2);
  expect("cos", Cos(), {-0x1p29, 0x1p29}, 2);
  expect("tan", Tan(), {-0x1p29, 0x1p29});
  expect("sinh", Sinh(), {-95, 95}, 3);
  expect("cosh", Cosh(), {-95, 95}, 3);
  expect("asin", Asin(), {-1, 1}, 3);
  expect("acos", Acos(), {-1, 1}, 3);
  expect("atan", Atan(), {-3e38, 3e38}, 3);
  expect("erf", Erf(), {-6, 6}, 3);
  expect("erfinv", Erfinv(), {-1, 1});
  expect("silu", Silu(), {-80, 80});
  expect("elu", Elu({Unary::kElu, 1}), {-110, 10}, 2);
  expect("softplus", Softplus({Unary::kSoftplus, 1, 20}), {-80, 80}, 3);
}

TEST(UnaryFunctors, DerivativesAreWithinFiveUnitsOfTheLastPlace) {
  const auto worst = [](const auto& function, Range range) {
    double result = 0;
    for (int i = 0; i <= 60000; ++i) {
      const float x = static_cast<float>(range.low + (range.high - range.low) * i / 60000);
      result = std::max(result, ulps(function.backward(x, 1), function.exact_derivative(static_cast<double>(x))));
    }
    return result;
  };
  EXPECT_LE(worst(Expm1(), {-80, 80}), 2);
  EXPECT_LE(worst(Log1p(), {-0.99, 9}), 2);
  EXPECT_LE(worst(Log2(), {0.01, 9}), 2);
  EXPECT_LE(worst(Log10(), {0.01, 9}), 2);
  EXPECT_LE(worst(Sin(), {-100, 100}), 2);
  EXPECT_LE(worst(Cos(), {-100, 100}), 2);
  EXPECT_LE(worst(Tan(), {-100, 100}), 5);
  EXPECT_LE(worst(Sinh(), {-80, 80}), 3);
  EXPECT_LE(worst(Cosh(), {-80, 80}), 3);
  EXPECT_LE(worst(Asin(), {-0.999, 0.999}), 3);
  EXPECT_LE(worst(Acos(), {-0.999, 0.999}), 3);
  EXPECT_LE(worst(Atan(), {-100, 100}), 2);
  EXPECT_LE(worst(Erf(), {-8, 8}), 4);
  EXPECT_LE(worst(Erfinv(), {-4, 4}), 4);
  EXPECT_LE(worst(Elu({Unary::kElu, 1}), {-80, 10}), 2);
  EXPECT_LE(worst(Softplus({Unary::kSoftplus, 1, 20}), {-80, 80}), 4);
}

}  // namespace
}  // namespace lockstep::kernels
