// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/reduce_on_plateau.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/optim/schedule.h"

namespace lockstep::optim {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

/// The rates behind each value, from 0.1 on.
std::vector<double> rates_behind(const std::vector<double>& values, const ReduceOnPlateauSchedule& options,
                                 Better better = Better::kLower) {
  ReduceOnPlateau plateau(options, 0.1, better);
  std::vector<double> rates;
  for (const double value : values) {
    const double before = plateau.learning_rate();
    const bool reduced = plateau.add(value);
    EXPECT_EQ(reduced, plateau.learning_rate() != before);
    rates.push_back(plateau.learning_rate());
  }
  return rates;
}

const std::vector<double> kLosses{2.0,  1.5,  1.4999, 1.49984, 1.4, 1.41, 1.42, 1.39, 1.39, 1.39,
                                  1.39, 1.39, 1.39,   1.2,     1.3, 1.3,  1.3,  1.3,  1.3,  1.3};
const std::vector<double> kAccuracies{0.5, 0.6, 0.6, 0.60005, 0.61, 0.61, 0.61, 0.9, 0.9, 0.90005};

// torch.optim.lr_scheduler.ReduceLROnPlateau of PyTorch 2.15, from a rate of 0.1 on; to the last bit.
TEST(ReduceOnPlateau, IsPyTorchsWithItsDefaults) {
  const std::vector<double> rates{0.1,
                                  0.1,
                                  0.1,
                                  0.1,
                                  0.1,
                                  0.1,
                                  0.010000000000000002,
                                  0.010000000000000002,
                                  0.010000000000000002,
                                  0.0010000000000000002,
                                  0.0010000000000000002,
                                  0.00010000000000000003,
                                  0.00010000000000000003,
                                  0.00010000000000000003,
                                  0.00010000000000000003,
                                  1.0000000000000004e-05,
                                  1.0000000000000004e-05,
                                  1.0000000000000004e-06,
                                  1.0000000000000004e-06,
                                  1.0000000000000005e-07};
  EXPECT_EQ(rates_behind(kLosses, {.patience = 1}), rates);
  EXPECT_EQ(ReduceOnPlateauSchedule().patience, 10);
}

TEST(ReduceOnPlateau, IsPyTorchsWithAnAbsoluteThresholdACooldownAndALeastRate) {
  EXPECT_THAT(rates_behind(kLosses, {.factor = 0.5,
                                     .patience = 0,
                                     .threshold = 0.05,
                                     .threshold_mode = ThresholdMode::kAbsolute,
                                     .cooldown = 2,
                                     .min_lr = 0.01}),
              ElementsAreArray({0.1,    0.1,  0.05, 0.05, 0.05, 0.025, 0.025, 0.025, 0.0125, 0.0125,
                                0.0125, 0.01, 0.01, 0.01, 0.01, 0.01,  0.01,  0.01,  0.01,   0.01}));
  EXPECT_THAT(rates_behind(kLosses, {.factor = 0.3, .patience = 1, .threshold = 0, .cooldown = 1, .min_lr = 0.005}),
              ElementsAreArray({0.1,   0.1,   0.1,   0.1,   0.1,   0.1,   0.03,  0.03,  0.03,  0.009,
                                0.009, 0.009, 0.005, 0.005, 0.005, 0.005, 0.005, 0.005, 0.005, 0.005}));
}

TEST(ReduceOnPlateau, IsPyTorchsWhereAReductionIsTooSmall) {
  std::vector<double> expected(20, 0.05);
  expected[0] = expected[1] = 0.1;
  EXPECT_EQ(rates_behind(kLosses, {.factor = 0.5, .patience = 0, .epsilon = 0.03}), expected);
}

TEST(ReduceOnPlateau, IsPyTorchsWhereHigherIsBetter) {
  EXPECT_THAT(rates_behind(kAccuracies, {.factor = 0.5, .patience = 1}, Better::kHigher),
              ElementsAre(0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025, 0.025, 0.0125));
  EXPECT_THAT(
      rates_behind(kAccuracies,
                   {.factor = 0.5, .patience = 0, .threshold = 0.01, .threshold_mode = ThresholdMode::kAbsolute},
                   Better::kHigher),
      ElementsAre(0.1, 0.1, 0.05, 0.025, 0.0125, 0.00625, 0.003125, 0.003125, 0.0015625, 0.00078125));
}

TEST(ReduceOnPlateau, IsPyTorchsOfNaNAndOfNegativeValues) {
  EXPECT_THAT(rates_behind({NAN, 3, NAN, NAN, 2, NAN}, {.factor = 0.5, .patience = 0}),
              ElementsAre(0.05, 0.05, 0.025, 0.0125, 0.0125, 0.00625));
  EXPECT_THAT(rates_behind({-1, -1.00005, -1.1, -1.1, -0.5}, {.factor = 0.5, .patience = 0}),
              ElementsAre(0.1, 0.1, 0.1, 0.1, 0.05));
}

TEST(ReduceOnPlateau, DoesNotRaiseARateBelowTheLeastOne) {
  EXPECT_THAT(rates_behind({1, 1, 1}, {.patience = 0, .min_lr = 0.5}), ElementsAre(0.1, 0.1, 0.1));
  EXPECT_EQ(reduced_rate({.min_lr = 0.5}, 0.1, 2), 0.1);
}

TEST(ReduceOnPlateau, GoesOnFromItsState) {
  const ReduceOnPlateauSchedule options{.factor = 0.3, .patience = 1, .threshold = 0, .cooldown = 1};
  const std::vector<double> whole = rates_behind(kLosses, options);
  for (std::size_t cut = 0; cut < kLosses.size(); ++cut) {
    ReduceOnPlateau stopped(options, 0.1), resumed(options, 0.1);
    for (std::size_t i = 0; i < cut; ++i) stopped.add(kLosses[i]);
    resumed.load_state(stopped.state());
    for (std::size_t i = cut; i < kLosses.size(); ++i) {
      resumed.add(kLosses[i]);
      EXPECT_EQ(resumed.learning_rate(), whole[i]) << "cut at " << cut << ", value " << i;
    }
  }
  EXPECT_EQ(ReduceOnPlateau({}, 0.1).state().best, std::numeric_limits<double>::infinity());
  EXPECT_EQ(ReduceOnPlateau({}, 0.1, Better::kHigher).state().best, -std::numeric_limits<double>::infinity());
}

TEST(ReduceOnPlateau, LowersTheRatesOfASchedule) {
  const ReduceOnPlateauSchedule options{.warmup_steps = 4, .factor = 0.5, .min_lr = 3};
  Schedule schedule(options, 8, 10);
  EXPECT_EQ(schedule.learning_rate(1), 4);
  EXPECT_EQ(schedule.learning_rate(9), 8);
  schedule.set_reductions(1);
  EXPECT_EQ(schedule.learning_rate(1), 2) << "the warm-up climbs to the reduced rate";
  EXPECT_EQ(schedule.learning_rate(9), 4);
  schedule.set_reductions(3);
  EXPECT_THAT(schedule.table(), ElementsAre(0.75, 1.5, 2.25, 3, 3, 3, 3, 3, 3, 3));
}

TEST(ReduceOnPlateau, RefusesWhatCannotBeMeant) {
  const auto refused = [](const ReduceOnPlateauSchedule& options, const std::string& message) {
    EXPECT_THAT([&] { ReduceOnPlateau(options, 0.1); },
                ::testing::ThrowsMessage<FieldError>("schedule.reduce_on_plateau." + message));
    EXPECT_THAT([&] { Schedule(options, 0.1, 10); },
                ::testing::ThrowsMessage<FieldError>("schedule.reduce_on_plateau." + message));
  };
  refused({.factor = 1}, "factor: must be > 0 and < 1, is 1");
  refused({.factor = 0}, "factor: must be > 0 and < 1, is 0");
  refused({.patience = -1}, "patience: must be >= 0, is -1");
  refused({.threshold = -1}, "threshold: must be >= 0, is -1");
  refused({.cooldown = -1}, "cooldown: must be >= 0, is -1");
  refused({.min_lr = -1}, "min_lr: must be >= 0, is -1");
  refused({.epsilon = NAN}, "epsilon: must be >= 0, is nan");
  EXPECT_THAT([] { ReduceOnPlateau({}, -1); },
              ::testing::ThrowsMessage<FieldError>("optim::ReduceOnPlateau.lr: must be >= 0, is -1"));
}

}  // namespace
}  // namespace lockstep::optim
