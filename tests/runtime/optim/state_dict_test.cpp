// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/state_dict.h"

#include <gmock/gmock.h>

#include <cmath>

#include "runtime/base/error.h"
#include "tests/runtime/optim/small_model.h"

namespace lockstep::optim {
namespace {

using optim::testing::SmallModel;
using optim::testing::state_of;
using optim::testing::values_of;
using optim::testing::with_adam;
using optim::testing::with_sgd;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Copies, as a program that saves makes them.
nn::StateDict copies_of(const nn::StateDict& state) {
  nn::StateDict copies;
  for (const auto& [name, tensor] : state) {
    copies[name] = Tensor::empty(tensor.shape(), tensor.dtype());
    copies[name].copy_from(tensor);
  }
  return copies;
}

TEST(StateDict, OfModelAndOptimizerRestoresATraining) {
  const auto make = with_adam({.lr = 0.1});
  SmallModel trained(make), restored(make);
  for (int step = 1; step <= 3; ++step) {
    trained.backward(step);
    trained.optimizer->step();
  }
  EXPECT_TRUE(nn::load_state_dict(restored.net, copies_of(nn::state_dict(trained.net))).empty());
  EXPECT_TRUE(load_state_dict(*restored.optimizer, copies_of(state_dict(*trained.optimizer))).empty());
  for (SmallModel* model : {&trained, &restored}) {
    model->backward(4);
    model->optimizer->step();
  }
  EXPECT_EQ(state_of(*restored.optimizer), state_of(*trained.optimizer));
  EXPECT_EQ(restored.optimizer->applied_steps(), 4);
}

TEST(StateDict, RoundsSixteenBitWeightsAnew) {
  SmallModel from(with_sgd({.lr = 1})),
      into(with_sgd({.lr = 1}), {.compute_dtype = DType::kFloat16, .reduced_parameters = true});
  into.net.set_arena(into.arena);
  from.backward(1);
  from.optimizer->step();
  nn::load_state_dict(into.net, nn::state_dict(from.net));
  EXPECT_EQ(values_of(into.arena->masters()), values_of(from.arena->masters()));
  const double weight = from.parameters()[0].tensor.item();
  EXPECT_NEAR(into.parameters()[0].tensor.item(), weight, std::abs(weight) * 0x1p-11);
}

TEST(StateDict, ListsAllThatDoesNotFit) {
  SmallModel model(with_sgd({.lr = 1, .momentum = 0.9}));
  const std::vector<double> before = values_of(model.arena->masters());
  nn::StateDict state = copies_of(nn::state_dict(model.net));
  state.erase("dense.bias");
  state["dense.weight"] = Tensor::zeros({2}, DType::kFloat32);
  state["other"] = Tensor::zeros({1}, DType::kFloat32);
  state["norm.weight"] = Tensor::zeros({7}, DType::kFloat32);
  EXPECT_THAT([&] { nn::load_state_dict(model.net, state); },
              ThrowsMessage<UsageError>(AllOf(HasSubstr("missing: dense.bias"), HasSubstr("unexpected: other"),
                                              HasSubstr("misshaped: dense.weight: float32 [2] on cpu for"))));
  EXPECT_EQ(values_of(model.arena->masters()), before);
  const nn::StateDifferences found = nn::load_state_dict(model.net, state, /*strict=*/false);
  EXPECT_THAT(found.missing, ElementsAre("dense.bias"));
  EXPECT_THAT(found.unexpected, ElementsAre("other"));
  EXPECT_EQ(found.misshaped.size(), 1u);
  EXPECT_THAT(values_of(model.parameters()[2].tensor), ::testing::Each(0));
  EXPECT_THAT([&] { load_state_dict(*model.optimizer, {}); },
              ThrowsMessage<UsageError>(HasSubstr("missing: momentum/dense.bias")));
}

}  // namespace
}  // namespace lockstep::optim
