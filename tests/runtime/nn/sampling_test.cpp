// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/sampling.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "runtime/base/error.h"

namespace lockstep::nn {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const CounterRng kRng(5, CounterRng::Purpose::kUser);

/// How often each token comes in `draws` draws.
std::vector<int> counts(const std::vector<float>& logits, const SamplingOptions& options, int draws) {
  std::vector<int> times(logits.size());
  for (int i = 0; i < draws; ++i) {
    ++times[static_cast<std::size_t>(sample_token(logits, options, kRng, static_cast<std::uint64_t>(i)))];
  }
  return times;
}

TEST(SampleToken, DrawsTheSoftmaxOfTheLogitsOverTheTemperature) {
  const std::vector<float> logits{std::log(0.1f), std::log(0.6f), std::log(0.3f)};
  constexpr int kDraws = 20000;
  const std::vector<int> plain = counts(logits, {}, kDraws);
  // Within five deviations of a binomial's.
  EXPECT_NEAR(plain[0], 0.1 * kDraws, 5 * std::sqrt(0.1 * 0.9 * kDraws));
  EXPECT_NEAR(plain[1], 0.6 * kDraws, 5 * std::sqrt(0.6 * 0.4 * kDraws));
  // At temperature 1/2 probabilities are squared: 0.01, 0.36, 0.09 of 0.46.
  const std::vector<int> cold = counts(logits, {.temperature = 0.5}, kDraws);
  EXPECT_NEAR(cold[1], 0.36 / 0.46 * kDraws, 5 * std::sqrt(0.36 / 0.46 * 0.1 / 0.46 * kDraws));
}

TEST(SampleToken, KeepsTheLikeliest) {
  const std::vector<float> logits{0, 2, 1, 2, -1};
  const std::vector<int> two = counts(logits, {.top_k = 2}, 400);
  EXPECT_THAT(two, testing::ElementsAre(0, testing::Gt(100), 0, testing::Gt(100), 0));
  // Of equal logits the first is the larger.
  EXPECT_EQ(counts(logits, {.top_k = 1}, 20)[1], 20);
  EXPECT_EQ(counts(logits, {.temperature = 0}, 20)[1], 20);
  EXPECT_EQ(counts(logits, {.temperature = 1, .top_k = 9}, 400), counts(logits, {}, 400));
}

TEST(SampleToken, IsNamedByKeyAndPosition) {
  const std::vector<float> logits(50, 1.0f);
  std::set<std::int64_t> drawn;
  for (std::uint64_t position = 0; position < 20; ++position) {
    const std::int64_t token = sample_token(logits, {}, kRng, position);
    EXPECT_EQ(sample_token(logits, {}, CounterRng(5, CounterRng::Purpose::kUser), position), token);
    drawn.insert(token);
  }
  EXPECT_GT(drawn.size(), 10u);
}

TEST(SampleToken, NeverDrawsWhatHasNoProbability) {
  EXPECT_EQ(counts({-kInfinity, 1, -kInfinity}, {}, 200)[1], 200);
  EXPECT_EQ(counts({-kInfinity, 1, -kInfinity}, {.temperature = 100, .top_k = 2}, 200)[1], 200);
  EXPECT_EQ(counts({-1e38f, 3e38f, -3e38f}, {.temperature = 1e-3}, 50)[1], 50);
}

TEST(SampleToken, RefusesWhatHasNoMeaning) {
  const std::vector<float> logits{0, 1};
  EXPECT_THROW(sample_token(logits, {.temperature = -1}, kRng, 0), FieldError);
  EXPECT_THROW(sample_token(logits, {.temperature = kInfinity}, kRng, 0), FieldError);
  EXPECT_THROW(sample_token(logits, {.top_k = -1}, kRng, 0), FieldError);
  EXPECT_THROW(sample_token({}, {}, kRng, 0), UsageError);
  EXPECT_THROW(sample_token(std::vector<float>{0, NAN}, {}, kRng, 0), UsageError);
  EXPECT_THROW(sample_token(std::vector<float>{0, kInfinity}, {}, kRng, 0), UsageError);
  EXPECT_THROW(sample_token(std::vector<float>{-kInfinity}, {}, kRng, 0), UsageError);
}

}  // namespace
}  // namespace lockstep::nn
