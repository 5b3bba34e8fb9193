// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <limits>

#include "runtime/kernels/assign.h"
#include "tests/runtime/optim/small_model.h"

namespace lockstep::optim {
namespace {

using optim::testing::device;
using optim::testing::every_optimizer;
using optim::testing::MakeOptimizer;
using optim::testing::SmallModel;
using optim::testing::values_of;
using ::testing::Each;

class MissingGradient : public ::testing::TestWithParam<MakeOptimizer> {};
INSTANTIATE_TEST_SUITE_P(Optimizers, MissingGradient, ::testing::ValuesIn(every_optimizer()),
                         [](const auto& instance) { return std::string(instance.param.name); });

/// A step in which only the dense layer's bias has a gradient.
void step_bias_alone(SmallModel& model, double gradient) {
  model.optimizer->zero_grad();
  ops::sum(ops::scale(model.parameters()[1].tensor, gradient)).backward();
  model.optimizer->check_gradients();
  model.optimizer->step(1.0f, 0.0f);
}

TEST_P(MissingGradient, LeavesWeightDecayMomentumAndStepCountAlone) {
  SmallModel model(GetParam());
  model.backward(1);
  model.optimizer->check_gradients();
  model.optimizer->step(1.0f, 0.0f);
  const auto part = [&model](const Tensor& flat, std::size_t slot) {
    return values_of(flat.rows(model.arena->slots()[slot].begin, model.arena->slots()[slot].end));
  };
  const auto state = [&](std::size_t slot) {
    std::vector<std::vector<double>> all{part(model.arena->masters(), slot)};
    for (const auto& [name, tensor] : model.optimizer->state()) all.push_back(part(tensor, slot));
    const auto row = static_cast<std::int64_t>(slot);
    for (const auto& [name, tensor] : model.optimizer->parameter_state()) {
      all.push_back(values_of(tensor.rows(row, row + 1)));
    }
    return all;
  };
  std::vector<std::vector<std::vector<double>>> before;
  for (std::size_t slot = 0; slot < 4; ++slot) before.push_back(state(slot));
  // What lies in an empty slot is not even looked at.
  kernels::fill(model.arena->grads(), std::numeric_limits<double>::quiet_NaN());
  step_bias_alone(model, 1);
  for (std::size_t slot = 0; slot < 4; ++slot) {
    const bool has = model.arena->slots()[slot].parameter.name == "dense.bias";
    EXPECT_EQ(state(slot) == before[slot], !has) << slot;
    EXPECT_EQ(model.optimizer->parameter_steps().item(static_cast<std::int64_t>(slot)), has ? 2 : 1) << slot;
  }
  EXPECT_FALSE(model.parameters()[0].tensor.grad().defined());
  EXPECT_EQ(model.optimizer->applied_steps(), 2);
}

TEST_P(MissingGradient, MakesALaterFirstStepTheParametersOwnFirst) {
  SmallModel late(GetParam()), fresh(GetParam());
  for (int step = 0; step < 5; ++step) step_bias_alone(late, 1);
  for (SmallModel* model : {&late, &fresh}) {
    model->backward(1);
    model->optimizer->check_gradients();
    // Clipping by norm looks at the gradients alone, which are the same.
    model->optimizer->step(1.0f, 0.0f);
  }
  EXPECT_EQ(values_of(late.parameters()[0].tensor), values_of(fresh.parameters()[0].tensor));
  EXPECT_NE(values_of(late.parameters()[1].tensor), values_of(fresh.parameters()[1].tensor));
}

TEST_P(MissingGradient, IsNoSkipAndASkipCountsForNoParameter) {
  SmallModel model(GetParam());
  model.backward(1);
  model.optimizer->check_gradients();
  model.optimizer->step(1.0f, 1.0f);
  EXPECT_THAT(values_of(model.optimizer->parameter_steps()), Each(0));
}

}  // namespace
}  // namespace lockstep::optim
