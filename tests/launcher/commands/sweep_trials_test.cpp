// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/sweep_trials.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <set>

#include "runtime/base/error.h"

namespace lockstep::launcher {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

std::vector<std::string> names(const SweepSpace& space) {
  std::vector<std::string> names;
  for (const Trial& trial : trials_of(space)) names.push_back(trial.name);
  return names;
}

TEST(SweepTrials, AreEveryPointOfTheGrid) {
  const SweepSpace space{.grid = {"optimizer.sgd.lr=0.1,0.2", "train.steps=10,20"}};
  EXPECT_THAT(names(space), ElementsAre("lr=0.1,steps=10", "lr=0.1,steps=20", "lr=0.2,steps=10", "lr=0.2,steps=20"));
  EXPECT_THAT(trials_of(space)[1].settings, ElementsAre("optimizer.sgd.lr=0.1", "train.steps=20"));
}

TEST(SweepTrials, ACommaWithinBracketsIsPartOfAValue) {
  const SweepSpace space{.grid = {"model.mlp.hidden=[64, 32],[128]", "schedule={ constant {} }"}};
  const std::vector<Trial> trials = trials_of(space);
  ASSERT_THAT(trials, SizeIs(2));
  EXPECT_THAT(trials[0].settings, ElementsAre("model.mlp.hidden=[64, 32]", "schedule={ constant {} }"));
  for (const Trial& trial : trials) EXPECT_EQ(trial.name.find_first_of("/[]{} "), std::string::npos) << trial.name;
  EXPECT_NE(trials[0].name, trials[1].name);
}

TEST(SweepTrials, DrawWithinTheirBoundsAndTheSameWhenThereAreMore) {
  SweepSpace space{.random = {"optimizer.sgd.lr=log:1e-4:1e-1", "train.steps=int:3:5"}, .draws = 200, .seed = 7};
  const std::vector<std::string> many = names(space);
  int below = 0;
  std::set<std::string> steps;
  for (const Trial& trial : trials_of(space)) {
    const double rate = std::strtod(trial.settings[0].substr(trial.settings[0].find('=') + 1).c_str(), nullptr);
    EXPECT_GE(rate, 1e-4);
    EXPECT_LE(rate, 1e-1);
    below += rate < 3.162e-3 ? 1 : 0;
    steps.insert(trial.settings[1]);
  }
  EXPECT_NEAR(below, 100, 30) << "half of a logarithmic range lies below its geometric mean";
  EXPECT_THAT(steps, ElementsAre("train.steps=3", "train.steps=4", "train.steps=5"));
  space.draws = 5;
  const std::vector<std::string> few = names(space);
  EXPECT_EQ(few, std::vector<std::string>(many.begin(), many.begin() + 5));
  space.seed = 8;
  EXPECT_NE(names(space), few);
}

TEST(SweepTrials, OfEqualDrawsAreOneRun) {
  EXPECT_THAT(trials_of({.random = {"train.steps=choice:5,6"}, .draws = 50}), SizeIs(2));
}

TEST(SweepTrials, RefuseWhatMeansNothing) {
  for (const char* text : {"lr", "=1", "lr=", "lr=normal:0:1", "lr=log:0:1", "lr=log:2:1", "lr=log:1", "lr=int:a:b",
                           "lr=int:0.5:2.5", "lr=log:1:inf"}) {
    EXPECT_THROW(trials_of({.random = {text}}), UsageError) << text;
  }
  EXPECT_THROW(trials_of({.grid = {"a=1", "a=2"}}), UsageError);
  EXPECT_THROW(trials_of({}), UsageError);
  const std::string wide = "=1,2,3,4,5,6,7,8,9,10";
  EXPECT_THROW(trials_of({.grid = {"a" + wide, "b" + wide, "c" + wide, "d" + wide, "e" + wide, "f" + wide}}),
               UsageError);
}

}  // namespace
}  // namespace lockstep::launcher
