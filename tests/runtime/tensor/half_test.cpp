// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockstep {
namespace {

/// A 16-bit format decoded from its definition, with no trick in common with half.h.
struct Format {
  int exponent_bits;
  int mantissa_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  unsigned infinity() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }

  /// The value of a pattern without sign that is no NaN. The pattern of infinity gives the value that would follow the
  /// largest finite one, which is what rounding compares with.
  double decode(unsigned magnitude) const {
    const int exponent = static_cast<int>(magnitude >> mantissa_bits);
    const double fraction = std::ldexp(magnitude & ((1u << mantissa_bits) - 1), -mantissa_bits);
    return exponent == 0 ? std::ldexp(fraction, 1 - bias()) : std::ldexp(1 + fraction, exponent - bias());
  }

  /// The pattern nearest to x, by trying neighbours: nearest, then even.
  unsigned encode(double x) const {
    const unsigned sign = std::signbit(x) ? 0x8000u : 0u;
    x = std::abs(x);
    if (std::isinf(x)) return sign | infinity();
    unsigned low = 0;
    unsigned high = infinity();  // patterns are ordered as their values are
    if (x >= decode(high)) return sign | high;
    while (high - low > 1) {
      const unsigned middle = (low + high) / 2;
      (decode(middle) <= x ? low : high) = middle;
    }
    const double below = x - decode(low);
    const double above = decode(high) - x;
    const bool up = above < below || (above == below && low % 2 == 1);
    return sign | (up ? high : low);
  }
};

constexpr Format kHalf{5, 10};
constexpr Format kBFloat16{8, 7};

template <class T>
void expect_all_patterns_round_trip(const Format& format) {
  for (unsigned bits = 0; bits < 0x10000u; ++bits) {
    T value;
    value.bits = static_cast<std::uint16_t>(bits);
    const float widened = value;
    const unsigned magnitude = bits & 0x7fffu;
    if (magnitude > format.infinity()) {
      ASSERT_TRUE(std::isnan(widened)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(T(widened)))) << bits;
      continue;
    }
    const double expected = magnitude == format.infinity() ? INFINITY : format.decode(magnitude);
    ASSERT_EQ(widened, static_cast<float>(bits < 0x8000u ? expected : -expected)) << bits;
    ASSERT_EQ(T(widened).bits, bits);
  }
}

template <class T>
void expect_rounds_to_nearest_even(const Format& format) {
  for (unsigned magnitude = 0; magnitude < format.infinity(); ++magnitude) {
    const double value = format.decode(magnitude);
    const double next = format.decode(magnitude + 1);
    const float middle = static_cast<float>((value + next) / 2);
    for (const float between : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, INFINITY)}) {
      ASSERT_EQ(T(between).bits, format.encode(between)) << magnitude << " " << between;
      ASSERT_EQ(T(-between).bits, format.encode(-between)) << magnitude << " " << between;
    }
  }
}

TEST(Half, EveryPatternRoundTripsThroughFloat) { expect_all_patterns_round_trip<Half>(kHalf); }
TEST(BFloat16, EveryPatternRoundTripsThroughFloat) { expect_all_patterns_round_trip<BFloat16>(kBFloat16); }

TEST(Half, RoundsToNearestEvenAroundEveryMidpoint) { expect_rounds_to_nearest_even<Half>(kHalf); }
TEST(BFloat16, RoundsToNearestEvenAroundEveryMidpoint) { expect_rounds_to_nearest_even<BFloat16>(kBFloat16); }

TEST(Half, RoundsFloatsOfEveryExponentAsTheSlowCheckDoes) {
  // A stride that is coprime with the mantissa visits every exponent with many mantissas.
  for (std::uint64_t bits = 0; bits < 0x7f800000u; bits += 40009) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    ASSERT_EQ(Half(value).bits, kHalf.encode(value)) << value;
    ASSERT_EQ(BFloat16(value).bits, kBFloat16.encode(value)) << value;
  }
}

TEST(Half, OverflowBecomesInfinity) {
  EXPECT_EQ(static_cast<float>(Half(65504.0f)), 65504.0f);
  EXPECT_EQ(static_cast<float>(Half(65519.996f)), 65504.0f);
  EXPECT_EQ(static_cast<float>(Half(65520.0f)), INFINITY);
  EXPECT_EQ(static_cast<float>(Half(-1e30f)), -INFINITY);
  EXPECT_EQ(static_cast<float>(BFloat16(std::numeric_limits<float>::max())), INFINITY);
}

TEST(Half, NaNStaysNaNWhateverItsPayload) {
  for (const std::uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u}) {
    const float nan = std::bit_cast<float>(bits);
    EXPECT_TRUE(std::isnan(static_cast<float>(Half(nan)))) << bits;
    EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(nan)))) << bits;
  }
}

}  // namespace
}  // namespace lockstep
