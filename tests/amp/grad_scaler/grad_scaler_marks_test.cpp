// SPDX-License-Identifier: Apache-2.0
// Gradients know what they are multiplied by: which uses of a scaler are errors, and which stay free of them.
#include <gmock/gmock.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "runtime/autograd/engine.h"
#include "runtime/base/error.h"
#include "runtime/optim/clip.h"
#include "tests/amp/grad_scaler/scaled_model.h"

namespace lockstep::amp {
namespace {

using amp::testing::device;
using amp::testing::ScaledModel;
using amp::testing::scaler_with;
using amp::testing::state_of;
using amp::testing::values_of;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

auto refused(const char* message) { return ThrowsMessage<UsageError>(HasSubstr(message)); }

/// A scaler and a model, with the loss of a batch.
class ScalerMarks : public ::testing::Test {
 protected:
  struct Trained : ScaledModel {
    Tensor loss(std::uint32_t seed = 1) {
      const Tensor x = kernels::testing::random_tensor({6, 5}, DType::kFloat32, seed);
      return ops::mean(ops::sigmoid(net.forward(x.to(device()))));
    }
  };

  void expect_that_a_new_step_is_allowed() {
    model.optimizer->zero_grad();
    scaler.scale(model.loss()).backward();
    EXPECT_NO_THROW(scaler.step(*model.optimizer)) << "what zero_grad() forgot does not count";
  }

  GradScaler scaler = scaler_with({.init = 1024});
  Trained model;
  const std::vector<kernels::testing::Bytes> before = state_of(*model.optimizer);
};

TEST_F(ScalerMarks, AStepWithTheGradientsOfALossThatWasNotScaledIsAnError) {
  scaler.scale(Tensor::zeros({}, DType::kFloat32, device()));
  for (const bool sum : {false, true}) {
    model.optimizer->zero_grad();
    (sum ? ops::add(model.loss(), model.loss(2)) : model.loss()).backward();
    EXPECT_THAT([&] { scaler.step(*model.optimizer); }, refused("is that of a loss that was not scaled"));
    EXPECT_THAT([&] { scaler.unscale_(*model.optimizer); }, refused("is that of a loss that was not scaled"));
  }
  EXPECT_EQ(state_of(*model.optimizer), before);
}

TEST_F(ScalerMarks, AStepOfTheOptimizerAloneWithScaledGradientsIsAnError) {
  for (const bool divided : {false, true}) {
    model.optimizer->zero_grad();
    const Tensor scaled = scaler.scale(model.loss());
    (divided ? ops::div(scaled, 4) : scaled).backward();
    EXPECT_THAT([&] { model.optimizer->step(); }, refused("optimizer.step(): the gradient of "));
  }
  EXPECT_EQ(state_of(*model.optimizer), before);
  scaler.unscale_(*model.optimizer);
  EXPECT_NO_THROW(model.optimizer->step());
}

TEST_F(ScalerMarks, ScaledAndOtherGradientsInOneSumAreAnError) {
  const auto sums = {
      std::function([&] { scaler.scale(model.loss()).backward(), model.loss(2).backward(); }),
      std::function([&] { model.loss(2).backward(), scaler.scale(model.loss()).backward(); }),
      std::function([&] { ops::add(scaler.scale(model.loss()), model.loss(2)).backward(); }),
      std::function([&] {
        ops::mean(ops::stack({scaler.scale(model.loss()), model.loss(2)})).backward();
      }),
      std::function([&] {
        autograd::backward(std::vector{model.loss(2), scaler.scale(model.loss())});
      }),
  };
  for (const auto& backward : sums) {
    model.optimizer->zero_grad();
    backward();
    EXPECT_THAT([&] { scaler.step(*model.optimizer); }, refused("of a scaled loss and of one that was not scaled"));
    EXPECT_THAT([&] { model.optimizer->step(); }, refused("optimizer.step()"));
  }
  expect_that_a_new_step_is_allowed();
}

TEST_F(ScalerMarks, ANewScaleBetweenMicroBatchesIsAnError) {
  for (const bool accumulated : {false, true}) {
    model.optimizer->zero_grad();
    scaler.scale(model.loss()).backward();
    scaler.update(accumulated ? 64.0 : 128.0);
    if (accumulated) scaler.scale(model.loss()).backward();
    EXPECT_THAT([&] { scaler.step(*model.optimizer); }, refused("was scaled before update() changed the scale"));
  }
  expect_that_a_new_step_is_allowed();
}

TEST_F(ScalerMarks, AnUpdateThatKeepsTheScaleIsNoneBetweenMicroBatches) {
  if (device() != kCpu) GTEST_SKIP() << "a GPU's scale is not asked for";
  GradScaler growing = scaler_with({.init = 1024, .growth_interval = 2});
  Trained generator, critic;
  growing.scale(generator.loss()).backward();
  critic.train(growing);
  growing.scale(generator.loss(2)).backward();
  EXPECT_NO_THROW(growing.step(*generator.optimizer));
  growing.update();
  ASSERT_EQ(growing.get_scale(), 2048);
  growing.scale(generator.loss()).backward();
  EXPECT_THAT([&] { growing.step(*generator.optimizer); }, refused("was scaled before update() changed the scale"));
}

TEST_F(ScalerMarks, ClippingBeforeUnscaleIsAnError) {
  scaler.backward(model.loss());
  const std::vector<double> gradients = values_of(model.arena->grads());
  EXPECT_THAT([&] { optim::clip_grad_norm_(model.parameters(), 1); }, refused("clip_grad_norm_: the gradient of "));
  EXPECT_THAT([&] { optim::clip_grad_value_(model.parameters(), 1); }, refused("clip_grad_value_: the gradient of "));
  EXPECT_EQ(values_of(model.arena->grads()), gradients);
  scaler.unscale_(*model.optimizer);
  EXPECT_NO_THROW(optim::clip_grad_norm_(model.parameters(), 1));
  EXPECT_NO_THROW(scaler.step(*model.optimizer));
}

TEST_F(ScalerMarks, WhatIsUnknownIsTakenForScaled) {
  GradScaler of_64 = scaler_with({.init = 64});
  Trained scaled, by_hand, begun;
  of_64.scale(scaled.loss()).backward();
  ops::scale(by_hand.loss(), 64).backward();
  const Tensor loss = begun.loss();
  autograd::backward(loss, Tensor::from<float>({64}, {}).to(device()));
  for (Trained* each : {&scaled, &by_hand, &begun}) {
    EXPECT_NO_THROW(of_64.step(*each->optimizer));
    EXPECT_EQ(state_of(*each->optimizer), state_of(*scaled.optimizer));
  }
}

TEST_F(ScalerMarks, SumsAndProductsOfScaledLossesAreScaled) {
  Trained one, other;
  ops::scale(ops::add(scaler.scale(one.loss()), scaler.scale(one.loss(2))), 0.5).backward();
  scaler.scale(ops::scale(ops::add(other.loss(), other.loss(2)), 0.5)).backward();
  for (Trained* each : {&one, &other}) EXPECT_NO_THROW(scaler.step(*each->optimizer));
}

TEST_F(ScalerMarks, AStaticScaleOfOneMakesNoDifference) {
  for (const GradScalerOptions& options :
       {GradScalerOptions{.dynamic = false, .init = 1}, GradScalerOptions{.enabled = false}}) {
    GradScaler one = scaler_with(options);
    Trained trained;
    one.scale(trained.loss()).backward();
    trained.loss(2).backward();
    EXPECT_NO_THROW(optim::clip_grad_norm_(trained.parameters(), 1));
    EXPECT_NO_THROW(one.step(*trained.optimizer));
    one.update();
    trained.optimizer->zero_grad();
    one.backward(trained.loss());
    EXPECT_NO_THROW(trained.optimizer->step());
  }
}

TEST(AbandonedStep, BehindUnscaleIsOverWithZeroGrad) {
  for (const bool finite : {true, false}) {
    GradScaler scaler = scaler_with({.init = 1024}), plain = scaler_with({.init = 1024});
    ScaledModel model, expected;
    model.backward(scaler, finite);
    scaler.unscale_(*model.optimizer);
    model.optimizer->zero_grad();
    EXPECT_THAT([&] { scaler.step(*model.optimizer); }, refused("no inf check can be recorded"));
    model.backward(scaler);
    EXPECT_FALSE((*scaler.step(*model.optimizer)).found_inf);
    scaler.update();
    // Running statistics took the abandoned batch in; the weights did not.
    expected.train(plain);
    EXPECT_EQ(values_of(model.arena->masters()), values_of(expected.arena->masters()));
    EXPECT_EQ(scaler.get_scale(), 1024);
  }
}

TEST(AbandonedStep, MayBeUnscaledAgainBehindZeroGrad) {
  GradScaler scaler = scaler_with({.init = 1024}), one = scaler_with({.init = 1});
  ScaledModel model, expected;
  model.backward(scaler);
  scaler.unscale_(*model.optimizer);
  model.optimizer->zero_grad();
  model.backward(scaler);
  scaler.unscale_(*model.optimizer);
  expected.backward(one);
  kernels::testing::expect_close(model.arena->grads(), expected.arena->grads(), {.relative = 1e-6, .absolute = 1e-12});
}

TEST(AbandonedStep, LowersTheScaleWhereUpdateIsCalled) {
  GradScaler scaler = scaler_with({.init = 1024});
  ScaledModel model;
  model.backward(scaler, false);
  scaler.unscale_(*model.optimizer);
  model.optimizer->zero_grad();
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 512);
}

}  // namespace
}  // namespace lockstep::amp
