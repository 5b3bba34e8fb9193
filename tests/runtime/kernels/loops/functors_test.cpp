// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <numbers>

#include "runtime/kernels/functors/binary.h"
#include "runtime/kernels/functors/dropout.h"
#include "runtime/kernels/functors/fast_exp.h"
#include "runtime/kernels/functors/unary.h"
#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

TEST(FastExp, IsWithinTwoUnitsOfTheLastPlace) {
  double worst = 0;
  for (double x = -87.3; x < 88; x += 0.00037) {
    const float argument = static_cast<float>(x);
    const double exact = std::exp(static_cast<double>(argument));
    worst = std::max(worst, std::abs(static_cast<double>(fast_exp(argument)) - exact) / exact);
  }
  EXPECT_LT(worst, 2 * 0x1p-23);
}

TEST(FastExp, EndsInZeroOneAndNaN) {
  EXPECT_EQ(fast_exp(0.0f), 1.0f);
  EXPECT_EQ(fast_exp(-200.0f), 0.0f);
  EXPECT_EQ(fast_exp(-INFINITY), 0.0f);
  EXPECT_TRUE(std::isnan(fast_exp(NAN)));
}

TEST(NormalDistribution, IsWithinTwoTenMillionths) {
  double worst = 0, worst_tail = 0, worst_density = 0;
  for (double at = -12; at < 12; at += 0.0003) {
    const float x = static_cast<float>(at);
    const double exact = std::erfc(-static_cast<double>(x) / std::numbers::sqrt2) / 2;
    const double density =
        std::exp(-static_cast<double>(x) * static_cast<double>(x) / 2) / std::sqrt(2 * std::numbers::pi);
    const double error = std::abs(static_cast<double>(normal(x).cumulative) - exact);
    worst = std::max(worst, error);
    if (x > -9 && x < 0) worst_tail = std::max(worst_tail, error / exact);
    worst_density = std::max(worst_density, std::abs(static_cast<double>(normal(x).density) - density));
  }
  EXPECT_LT(worst, 2e-7);
  EXPECT_LT(worst_density, 1e-7);
  EXPECT_LT(worst_tail, 4e-6);
}

TEST(GeluFunctor, KeepsItsLimitsAndNaN) {
  for (const float huge : {13.3f, 1e30f, INFINITY}) EXPECT_EQ(Gelu::value(huge), huge);
  for (const float huge : {-13.3f, -1e30f}) EXPECT_EQ(Gelu::value(huge), 0);
  // Of every payload: 2^x is made of bits.
  for (const std::uint32_t nan : {0x7f800001u, 0x7fc00000u, 0xffffffffu}) {
    EXPECT_TRUE(std::isnan(Gelu::value(std::bit_cast<float>(nan))));
    EXPECT_TRUE(std::isnan(Erf::value(std::bit_cast<float>(nan))));
  }
}

TEST(GeluTanhFunctor, IsExactToFloatsAndKeepsItsLimits) {
  double worst = 0;
  double worst_derivative = 0;
  for (double at = -12; at < 12; at += 0.0003) {
    const float x = static_cast<float>(at);
    const double exact_x = static_cast<double>(x);
    const double slope = std::sqrt(2 / std::numbers::pi);
    const double tanh = std::tanh(slope * (exact_x + 0.044715 * exact_x * exact_x * exact_x));
    const double derivative =
        (1 + tanh) / 2 + exact_x * (1 - tanh * tanh) / 2 * slope * (1 + 3 * 0.044715 * exact_x * exact_x);
    const double size = std::max(std::abs(exact_x), 1.0);
    worst = std::max(worst, std::abs(static_cast<double>(GeluTanh::value(x)) - exact_x * (1 + tanh) / 2) / size);
    worst_derivative = std::max(worst_derivative, std::abs(static_cast<double>(GeluTanh::backward(x, 1)) - derivative));
  }
  EXPECT_LT(worst, 3e-7);
  EXPECT_LT(worst_derivative, 1e-6);
  for (const float huge : {100.0f, 1e13f, 1e30f}) {
    EXPECT_EQ(GeluTanh::value(huge), huge);
    EXPECT_EQ(GeluTanh::value(-huge), 0);
    EXPECT_EQ(GeluTanh::backward(huge, 3), 3);
    EXPECT_EQ(GeluTanh::backward(-huge, 3), 0);
  }
}

/// The largest relative error of Function::value against `exact` where that is a normal number.
template <class Function, class Exact>
double worst_relative_error(double from, double to, Exact exact) {
  double worst = 0;
  for (double at = from; at < to; at += 0.0003) {
    const float x = static_cast<float>(at);
    const double expected = exact(static_cast<double>(x));
    if (std::abs(expected) < 1e-37) continue;
    worst = std::max(worst, std::abs(static_cast<double>(Function::value(x)) - expected) / std::abs(expected));
  }
  return worst;
}

TEST(TanhFunctor, IsExactToFloatsAndKeepsItsLimits) {
  const auto exact = [](double x) { return std::tanh(x); };
  EXPECT_LT(worst_relative_error<Tanh>(-12, 12, exact), 3 * 0x1p-23);
  // Where x^2 rounds away, and where it is subnormal.
  for (const float tiny : {1e-4f, 1e-30f, 1e-40f, 0.0f}) {
    EXPECT_EQ(Tanh::value(tiny), tiny);
    EXPECT_EQ(Tanh::value(-tiny), -tiny);
  }
  for (const float huge : {20.0f, 1e30f, INFINITY}) {
    EXPECT_EQ(Tanh::value(huge), 1.0f);
    EXPECT_EQ(Tanh::value(-huge), -1.0f);
  }
  EXPECT_TRUE(std::isnan(Tanh::value(NAN)));
  EXPECT_EQ(Tanh::backward(1.0f, 3.0f), 0.0f);
  EXPECT_EQ(Tanh::backward(0.5f, 2.0f), 1.5f);
}

TEST(SigmoidFunctor, IsExactToFloatsAndKeepsItsTail) {
  const auto exact = [](double x) { return 1 / (1 + std::exp(-x)); };
  EXPECT_LT(worst_relative_error<Sigmoid>(-80, 30, exact), 4 * 0x1p-23);
  EXPECT_EQ(Sigmoid::value(0.0f), 0.5f);
  EXPECT_EQ(Sigmoid::value(INFINITY), 1.0f);
  EXPECT_EQ(Sigmoid::value(-INFINITY), 0.0f);
  EXPECT_TRUE(std::isnan(Sigmoid::value(NAN)));
  EXPECT_EQ(Sigmoid::backward(0.5f, 2.0f), 0.5f);
}

TEST(Functions, OneThatIsNotInTheListIsRefused) {
  EXPECT_THROW(visit_unary(static_cast<Unary>(99), [](auto) {}), UsageError);
  EXPECT_THROW(visit_binary(static_cast<Binary>(99), [](auto) {}), UsageError);
  EXPECT_THROW(visit_ternary({static_cast<Ternary>(99)}, [](auto) {}), UsageError);
}

TEST(DropoutFunctor, KeepsExactlyWhereTheUniformNumberReachesP) {
  for (const double p : {0.0, 0.1, 0.25, 1.0 / 3, 0.9999999, 1.0}) {
    const Dropout dropout(p);
    for (const std::uint32_t near : {0u, dropout.threshold << 8, 0x80000000u, 0xffffffffu}) {
      for (std::uint32_t offset = 0; offset < 1024; ++offset) {
        const std::uint32_t bits = near - 512 + offset;
        const bool kept = dropout(bits, 1.0f) != 0.0f;
        EXPECT_EQ(kept, uniform_from_bits(bits) >= static_cast<float>(p)) << p << " " << bits;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
