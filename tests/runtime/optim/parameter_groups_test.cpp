// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "tests/runtime/optim/small_model.h"

namespace lockstep::optim {
namespace {

using optim::testing::device;
using optim::testing::every_optimizer;
using optim::testing::MakeOptimizer;
using optim::testing::SmallModel;
using optim::testing::values_of;
using optim::testing::with_adamw;
using optim::testing::with_sgd;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// The weights' change by one step of plain SGD with gradient 0: what decay and rate each parameter has.
std::vector<double> changes_of(const MakeOptimizer& optimizer) {
  SmallModel model(optimizer);
  kernels::fill(model.arena->masters(), 1.0);
  model.backward(1, 0);
  model.optimizer->step();
  std::vector<double> changes;
  for (const nn::Parameter& parameter : model.parameters()) changes.push_back(1 - parameter.tensor.item());
  return changes;
}

MATCHER_P(Nearly, expected, "") { return std::abs(arg - expected) < 1e-6; }

TEST(Groups, NormsAndBiasesDoNotDecay) {
  EXPECT_THAT(changes_of(with_sgd({.lr = 0.5, .weight_decay = 0.25})), ElementsAre(Nearly(0.125), 0, 0, 0));
  EXPECT_THAT(changes_of(with_adamw({.lr = 0.5, .weight_decay = 0.25})), ElementsAre(Nearly(0.125), 0, 0, 0));
}

TEST(Groups, MatchByRegularExpressionAndTheFirstOneWins) {
  EXPECT_THAT(changes_of(with_sgd({.lr = 0.5, .weight_decay = 0.25},
                                  {.groups = {{.match = "\\.bias$", .weight_decay = 0.5},
                                              {.match = "^norm", .lr_scale = 2, .weight_decay = 0.125}}})),
              ElementsAre(Nearly(0.125), Nearly(0.25), Nearly(0.125), Nearly(0.25)));
}

TEST(Groups, ARateAloneKeepsTheDecay) {
  EXPECT_THAT(
      changes_of(with_sgd({.lr = 0.5, .weight_decay = 0.25}, {.groups = {{.match = "dense", .lr_scale = 0.5}}})),
      ElementsAre(Nearly(0.0625), 0, 0, 0));
  EXPECT_THAT(changes_of(with_sgd({.lr = 0.5, .weight_decay = 0.25}, {.groups = {{.match = "dense", .lr_scale = 0}}})),
              Each(0));
}

TEST(Groups, ThatMatchNothingAreAnErrorWithTheNames) {
  try {
    SmallModel(with_sgd({.lr = 1}, {.groups = {{.match = "dense"}, {.match = "dense.weight"}}}));
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("optimizer.group[1].match: \"dense.weight\""));
    EXPECT_THAT(error.advice(), HasSubstr("dense.weight, dense.bias, norm.weight, norm.bias"));
  }
}

TEST(Groups, ThatAreNoRegularExpressionAreATypedError) {
  EXPECT_THAT([] { SmallModel(with_sgd({.lr = 1}, {.groups = {{.match = "("}}})); },
              ThrowsMessage<UsageError>(HasSubstr("optimizer.group[0].match: \"(\" is no regular")));
}

TEST(Frozen, ParametersAreLeftAlone) {
  for (const MakeOptimizer& optimizer : every_optimizer()) {
    SmallModel model(optimizer);
    model.backward(1);
    model.optimizer->step();
    const std::vector<nn::Parameter> parameters = model.parameters();
    parameters[0].tensor.set_requires_grad(false);
    const std::vector<double> frozen = values_of(parameters[0].tensor), other = values_of(parameters[1].tensor);
    model.optimizer->zero_grad();
    ops::sum(parameters[1].tensor).backward();
    model.optimizer->step();
    EXPECT_EQ(values_of(parameters[0].tensor), frozen) << optimizer.name;
    EXPECT_NE(values_of(parameters[1].tensor), other) << optimizer.name;
  }
}

}  // namespace
}  // namespace lockstep::optim
