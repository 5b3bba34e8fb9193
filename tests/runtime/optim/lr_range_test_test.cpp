// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/lr_range_test.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>

#include "runtime/base/error.h"

namespace lockstep::optim {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Five decades in 101 steps, 20 a decade, without smoothing: a made curve is what the rule sees.
constexpr LrRangeTestOptions kExact{.from = 1e-5, .to = 1, .steps = 101, .smoothing = 0};

/// The test of a model whose loss depends on the rate alone.
LrRangeTest tested(const std::function<double(double rate)>& loss, const LrRangeTestOptions& options = kExact) {
  LrRangeTest test(options);
  while (!test.done()) test.add(loss(test.rate()));
  return test;
}

/// 2 at low rates and 1 at high ones, falling fastest at `center`.
double falls_at(double center, double rate) { return 1 + 1 / (1 + rate / center); }

TEST(LrRangeTest, RaisesTheRateGeometrically) {
  const LrRangeTest test = tested([](double rate) { return falls_at(1e-2, rate); });
  ASSERT_EQ(test.points().size(), 101u);
  EXPECT_EQ(test.end(), LrRangeTest::End::kAllSteps);
  EXPECT_DOUBLE_EQ(test.points()[0].rate, 1e-5);
  EXPECT_NEAR(test.points()[20].rate, 1e-4, 1e-12);
  EXPECT_DOUBLE_EQ(test.points()[100].rate, 1);
  EXPECT_THROW(test.rate(), UsageError);
}

TEST(LrRangeTest, SuggestsWhereTheLossFallsFastest) {
  for (const double center : {1e-3, 1e-2, 3.1622776601683794e-2}) {
    const LrRangeTest test = tested([center](double rate) { return falls_at(center, rate); });
    EXPECT_NEAR(test.suggestion() / center, 1, 1e-9) << center;
    EXPECT_EQ(test.suggestion(), test.steepest().rate);
    EXPECT_DOUBLE_EQ(test.lowest_loss().rate, 1);
  }
}

TEST(LrRangeTest, SmoothsByARunningMeanWithoutItsBias) {
  LrRangeTest test({.smoothing = 0.75});
  for (const double loss : {4.0, 2.0, 8.0}) test.add(loss);
  EXPECT_DOUBLE_EQ(test.points()[0].smoothed, 4);
  EXPECT_DOUBLE_EQ(test.points()[1].smoothed, (4 * 0.75 + 2) / 1.75);
  EXPECT_DOUBLE_EQ(test.points()[2].smoothed, (4 * 0.5625 + 2 * 0.75 + 8) / 2.3125);
  EXPECT_EQ(test.points()[2].loss, 8);
  EXPECT_FALSE(test.done());
  EXPECT_THROW(test.end(), UsageError);
}

TEST(LrRangeTest, EndsWhereTheLossHasGrown) {
  const auto grows = [](double rate) { return falls_at(1e-3, rate) + (rate > 0.09 ? 100 * rate : 0); };
  const LrRangeTest test = tested(grows);
  EXPECT_EQ(test.end(), LrRangeTest::End::kGrown);
  EXPECT_NEAR(test.points().back().rate, 0.1, 1e-6);
  EXPECT_NEAR(test.suggestion(), 1e-3, 1e-9);
  EXPECT_EQ(reason_of(test), "the smoothed loss is above 4 times its lowest value");
  LrRangeTestOptions patient = kExact;
  patient.stop_factor = 200;
  EXPECT_EQ(tested(grows, patient).end(), LrRangeTest::End::kAllSteps);
}

TEST(LrRangeTest, EndsWhereTheLossIsNotFinite) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const LrRangeTest test = tested([bad](double rate) { return rate > 0.09 ? bad : falls_at(1e-3, rate); });
    EXPECT_EQ(test.end(), LrRangeTest::End::kNotFinite);
    EXPECT_EQ(test.points().size(), 80u) << "a loss that is not finite is no point";
    EXPECT_NEAR(test.suggestion(), 1e-3, 1e-9);
    EXPECT_EQ(reason_of(test), "the loss is no longer finite");
  }
}

// The loss of a model that has blown up may fall as steeply again.
TEST(LrRangeTest, LooksNoFurtherThanTheLowestLoss) {
  const auto spikes = [](double rate) { return falls_at(1e-3, rate) + (rate > 0.3 && rate < 0.5 ? 2.5 : 0); };
  const LrRangeTest test = tested([&](double rate) { return rate < 0.3 ? spikes(rate) : spikes(rate) + 0.1; });
  EXPECT_EQ(test.end(), LrRangeTest::End::kAllSteps);
  EXPECT_NEAR(test.suggestion(), 1e-3, 1e-9);
}

TEST(LrRangeTest, LeavesOutTheFirstTenth) {
  const auto drops = [](double rate) { return falls_at(1e-2, rate) + (rate < 2e-5 ? 3 : 0); };
  EXPECT_NEAR(tested(drops).suggestion(), 1e-2, 1e-9);
}

TEST(LrRangeTest, TakesLossesBelowZero) {
  const LrRangeTest test = tested([](double rate) { return falls_at(1e-2, rate) - 3 + (rate > 0.5 ? 12 : 0); });
  EXPECT_NEAR(test.suggestion(), 1e-2, 1e-9);
  EXPECT_EQ(test.end(), LrRangeTest::End::kGrown);
}

TEST(LrRangeTest, SuggestsNothingWhereTheLossNeverFalls) {
  const auto nothing = [](const LrRangeTest& test, const std::string& why) {
    EXPECT_THAT([&] { test.suggestion(); },
                ThrowsMessage<NumericsError>(HasSubstr("the loss does not fall between the learning rates 1e-05 and")));
    EXPECT_THAT([&] { test.lowest_loss(); }, ThrowsMessage<NumericsError>(HasSubstr(why)));
  };
  nothing(tested([](double) { return 2.0; }), "all steps are done");
  nothing(tested([](double rate) { return 2 + rate; }), "all steps are done");
  nothing(tested([](double rate) { return 2 - 0.01 * rate; }), "all steps are done");
  nothing(tested([](double rate) { return rate > 2e-5 ? NAN : 2.0; }), "the loss is no longer finite");
  nothing(tested([](double) { return NAN; }), "the loss is no longer finite");
  // Batches that differ: 10 %, about 2.
  int step = 0;
  const auto noise = [&step](double) {
    ++step;
    return 2 + 0.2 * std::sin(12.9898 * step) * std::sin(78.233 * step);
  };
  LrRangeTestOptions smooth = kExact;
  smooth.smoothing = 0.9;
  nothing(tested(noise, smooth), "all steps are done");
  EXPECT_NEAR(tested([&](double rate) { return noise(rate) + 2 * falls_at(1e-2, rate); }, smooth).suggestion(), 2e-2,
              2e-2)
      << "a fall that is larger is seen";
  EXPECT_THAT([] { LrRangeTest(kExact).suggestion(); }, ThrowsMessage<NumericsError>(HasSubstr("is not done")));
}

TEST(LrRangeTest, RefusesWhatCannotBeMeant) {
  const auto refused = [](const LrRangeTestOptions& options, const std::string& message) {
    EXPECT_THAT([&] { LrRangeTest test(options); }, ThrowsMessage<FieldError>("optim::LrRangeTest." + message));
  };
  refused({.from = 0}, "from: must be > 0, is 0");
  refused({.from = 1, .to = 1}, "to: must be > from, is 1");
  refused({.to = std::numeric_limits<double>::infinity()}, "to: must be > 0, is inf");
  refused({.steps = 19}, "steps: must be >= 20, is 19");
  refused({.smoothing = 1}, "smoothing: must be >= 0 and < 1, is 1");
  refused({.stop_factor = 1}, "stop_factor: must be > 1, is 1");
}

}  // namespace
}  // namespace lockstep::optim
